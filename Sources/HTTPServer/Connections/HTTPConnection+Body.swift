internal import EventLoop
internal import HTTPCore

/// A request whose head has been admitted and whose body is arriving.
struct IncomingRequest: Sendable {
    let head: RequestHead
    let plan: Plan
    /// Of whom it comes, as far as addresses tell.
    let network: UInt64
    /// Whose the body's memory is; nil as long as nobody but the address is known.
    var party: MemoryBudget.Party?
    var body = IncomingBody()
    /// What the body counts among the memory of its kind.
    var charge: MemoryCharge?

    init(head: RequestHead, plan: Plan, network: UInt64) {
        self.head = head
        self.plan = plan
        self.network = network
    }

    /// The most that the body can have.
    var longest: Int {
        switch head.framing {
        case .none: 0
        case .length(let length): length
        case .chunked: plan.bodyLimit
        }
    }

    /// Counts the memory that a body of such a capacity takes at its peak. Returns whether there is as much for its
    /// sender.
    mutating func reserve(_ capacity: Int, in budgets: ServerBudgets) -> Bool {
        guard capacity > (party == nil ? IncomingBody.freeUnidentifiedBytes : IncomingBody.freeBytes) else {
            return true
        }
        let budget = party == nil ? budgets.unidentifiedBodies : budgets.bodies
        let charge = charge ?? budget.open(for: party ?? .address(network))
        self.charge = charge
        let peak = plan.memory.peak(of: capacity)
        return peak <= charge.count || charge.resize(to: peak)
    }
}

extension HTTPConnection {
    /// Whether a body is small enough to be read from somebody of whom only the address is known, and the address has
    /// room for it.
    func mayReadUnidentified(_ request: IncomingRequest) -> Bool {
        guard request.longest <= listener.configuration.unidentifiedBodyLimit else { return false }
        var trial = request
        return trial.reserve(request.longest, in: listener.configuration.budgets)
    }

    /// Waits for the body of an admitted request.
    func awaitBody(_ request: IncomingRequest) {
        guard machine.admitted(machine.number, isIdentified: request.party != nil) else { return }
        incoming = request
        guard request.head.framing != .none else { return }
        bodyMeter = ProgressMeter(forgivesFirst: true)
        setDeadline(after: listener.configuration.bodyWindow)
        if request.head.expectsContinue, parser.bufferedByteCount == 0 {
            listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.continueResponse)
            sendWriteBuffer()
        }
    }

    /// Takes the body's bytes that have come. Returns whether the connection may have something else to look at.
    func readBody() -> Bool {
        // Taken out so that the body is appended in place.
        guard var request = incoming.take() else { return false }
        while let event = nextEvent() {
            switch event {
            case .head: preconditionFailure("the parser ends a body before it begins a head")
            case .end:
                run(request)
                return true
            case .body(let bytes):
                guard bytes.withUnsafeBytes({ append($0, to: &request) }) else { return false }
            }
        }
        guard machine.isReadingBody else { return false }
        incoming = request
        resumeReading()
        return false
    }

    /// Takes what was read as far as it belongs to the body that is arriving. Returns how many bytes that are.
    func takeBody(of bytes: UnsafeRawBufferPointer) -> Int {
        guard machine.isReadingBody, var request = incoming.take() else { return 0 }
        let count: Int
        do throws(HTTP1Error) {
            count = try parser.takeBody(of: bytes)
        } catch {
            refuse(error.refusal)
            return bytes.count
        }
        if count > 0 {
            guard append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), to: &request) else { return bytes.count }
        }
        incoming = request
        return count
    }

    /// Adds bytes to a body, unless its sender holds as much as it may. Returns whether the request goes on.
    private func append(_ bytes: UnsafeRawBufferPointer, to request: inout IncomingRequest) -> Bool {
        let needed = request.body.capacity(adding: bytes.count, framing: request.head.framing)
        guard request.reserve(needed, in: listener.configuration.budgets) else {
            refuse(listener.overload)
            return false
        }
        request.body.append(bytes, capacity: needed)
        return true
    }

    /// Whether a body has moved enough since the last time it was asked for; then it may go on.
    func isBodyMoving() -> Bool {
        let isLent = incoming?.charge?.isLent ?? false
        let configuration = listener.configuration
        guard machine.isReadingBody,
            bodyMeter.windowPassed(
                at: incoming?.body.bytes.count ?? 0,
                requiring: isLent ? configuration.lentBodyProgress : configuration.bodyProgress)
        else { return false }
        setDeadline(after: listener.configuration.bodyWindow)
        return true
    }
}
