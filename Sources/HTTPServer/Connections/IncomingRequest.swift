internal import EventLoop
internal import HTTPCore

/// An admitted request during the arrival of its body.
struct IncomingRequest: Sendable {
    let head: RequestHead
    let plan: RequestPlan
    /// The network of the client's address.
    let network: UInt64
    /// The sender that the body's memory is charged to. Nil while only the address is known.
    var memoryOwner: MemoryBudget.Owner?
    var body = IncomingBody()
    /// The charge of the body in its budget.
    var charge: MemoryCharge?
    /// Bytes that arrived before the body had to wait for memory. No more bytes are read meanwhile.
    var heldBack: ZeroizingBuffer?
    /// The time since which the body has borrowed memory.
    var lentSince: ContinuousClock.Instant?

    init(head: RequestHead, plan: RequestPlan, network: UInt64) {
        self.head = head
        self.plan = plan
        self.network = network
    }

    /// The maximum length of the body.
    var longest: Int {
        switch head.framing {
        case .none: 0
        case .length(let length): length
        case .chunked: plan.bodyLimit
        }
    }

    /// Charges the peak memory of a body with this capacity.
    ///
    /// Memory beyond the sender's quota is requested once, for the body's maximum length. No body holds a part and
    /// waits for the rest. Memory of an unidentified sender can be recalled.
    /// - Parameter wake: Called from any thread when a waiting body may request again, and when others need this
    ///   memory.
    mutating func reserve(
        _ capacity: Int, in budgets: ServerBudgets, at now: ContinuousClock.Instant,
        wake: @escaping @Sendable () -> Void
    ) -> MemoryGrant {
        guard capacity > (memoryOwner == nil ? IncomingBody.freeUnidentifiedBytes : IncomingBody.freeBytes) else {
            return .granted
        }
        let budget = memoryOwner == nil ? budgets.unidentifiedBodies : budgets.bodies
        let charge = charge ?? budget.open(for: memoryOwner ?? .address(network))
        self.charge = charge
        let peak = plan.memory.peak(of: capacity)
        if peak <= charge.count { return .granted }
        if memoryOwner == nil { return charge.hold(peak, at: now, wake: wake) ? .granted : .refused }
        guard peak > budget.quota else { return charge.resize(to: peak) ? .granted : .refused }
        return charge.borrow(plan.memory.peak(of: longest), from: network, wake: wake)
    }
}

/// The received bytes of a body.
///
/// Its capacity grows by the factor 4, or 2 for unidentified senders, and never above the announced or permitted
/// length. A body is therefore copied a few times at most. A sender that announces much and sends little takes little
/// memory. The capacity depends on the number of received bytes, and not on the pieces in which they arrive.
struct IncomingBody {
    private(set) var bytes = ZeroizingBuffer()

    /// Bodies up to this size are not charged. Connections have a limit of their own.
    static let freeBytes = 16 * 1_024
    /// The same limit for unidentified senders.
    static let freeUnidentifiedBytes = smallestCapacity
    private static let smallestCapacity = 4 * 1_024

    /// Returns the bytes, and leaves none.
    mutating func take() -> ZeroizingBuffer {
        defer { bytes = ZeroizingBuffer() }
        return bytes
    }

    /// Returns the capacity for `count` more bytes of a body with at most `longest`.
    func capacity(adding count: Int, atMost longest: Int, isIdentified: Bool) -> Int {
        let needed = bytes.count + count
        if needed <= bytes.capacity { return bytes.capacity }
        var capacity = max(bytes.capacity, Self.smallestCapacity)
        while capacity < needed { capacity *= isIdentified ? 4 : 2 }
        return max(needed, min(longest, capacity))
    }

    /// Appends bytes.
    /// - Parameter capacity: The result of ``capacity(adding:atMost:isIdentified:)``.
    mutating func append(_ more: UnsafeRawBufferPointer, capacity: Int) {
        if capacity > bytes.capacity { bytes.reserveCapacity(capacity) }
        bytes.append(more)
    }
}

extension HTTPConnection {
    /// Decides about a request from its head alone.
    func admit(_ head: RequestHead) {
        machine.headRead(ConnectionStateMachine.Exchange(head))
        answersHead = head.method == .head
        known = KnownRequest(head: head)
        guard !machine.isOverLimit, listener.places.taken < listener.places.total else { return refuseForNow(head) }
        switch listener.responder.admit(head, from: client) {
        case .refuse(let response): handOver(response, to: head, machine.number, network: client.ip.network)
        case .accept(let plan):
            parser.bodyLimit = plan.bodyLimit
            let request = IncomingRequest(head: head, plan: plan, network: (plan.client ?? client).ip.network)
            guard listener.places.hasRoom(for: request.network) else { return refuseForNow(head) }
            guard let identify = plan.identify, request.longest > listener.configuration.unidentifiedBodyLimit else {
                return awaitBody(request)
            }
            incoming = request
            self.identify(identify)
        }
    }

    /// Identifies the sender of the incoming request before its body is read.
    ///
    /// Also used for a body that exceeds the room for unidentified senders.
    func identify(_ identify: @escaping @Sendable () async -> Identification) {
        guard let request = incoming else { return }
        guard takePlace(for: request.network) else {
            incoming = nil
            return refuseForNow(request.head)
        }
        setDeadline(after: request.plan.handlerDeadline)
        let number = machine.number
        let connection = LoopBound(self, loop: listener.loop)
        task = Task(executorPreference: listener.loop) {
            connection.value.identified(number, await identify())
        }
    }

    private func identified(_ number: Int, _ identification: Identification) {
        guard number == machine.number, var request = incoming.take() else { return }
        task = nil
        releasePlace()
        switch identification {
        case .refuse(let response): handOver(response, to: request.head, number, network: request.network)
        case .memoryOwner(let memoryOwner):
            request.memoryOwner = memoryOwner
            known?.memoryOwner = memoryOwner
            if request.heldBack == nil {
                awaitBody(request)
            } else if machine.admitted(number, isIdentified: true) {
                incoming = request
                continueBody()
            }
            resumeReading()
        }
        processInput()
    }

    /// Executes a complete request.
    func run(_ request: IncomingRequest) {
        machine.bodyRead()
        request.charge?.noteArrival()
        guard takePlace(for: request.network) else { return refuseForNow(request.head) }
        setDeadline(after: request.plan.handlerDeadline)
        let number = machine.number
        let connection = LoopBound(self, loop: listener.loop)
        var request = request
        // The parser releases the body: no other code holds it.
        request.plan.body?.fill(with: request.body.take())
        task = Task(executorPreference: listener.loop) { [request] in
            let response = await request.plan.respond()
            // Held until here, also if the reply is too late, because the body takes memory for so long.
            request.charge?.resize(to: 0)
            guard let stream = connection.value.reply(number, response, to: request) else { return }
            do {
                try await stream.produce(StreamWriter(connection: connection, requestNumber: number))
                connection.value.streamFinished(number, succeeded: true)
            } catch {
                connection.value.streamFinished(number, succeeded: false)
            }
        }
    }

    /// Sends the reply, or its head before a stream. Returns the stream.
    private func reply(_ number: Int, _ response: Response, to request: IncomingRequest) -> ResponseStream? {
        guard number == machine.number else { return nil }
        if let stream = handOver(response, to: request.head, number, network: request.network) {
            beginStream(
                OutgoingStream(
                    isOpenEnded: stream.isOpenEnded,
                    isChunked: request.head.versionMinor > 0 && stream.length == nil, network: request.network,
                    pieceDeadline: request.plan.handlerDeadline))
            return isStreaming(number) ? stream : nil
        }
        task = nil
        releasePlace()
        processInput()
        return nil
    }

    /// Hands a reply to the socket. All replies, and refusals of requests, take this path.
    /// - Parameter network: The network that unread output is charged to.
    /// - Returns: The stream that has to follow.
    @discardableResult
    private func handOver(
        _ response: Response, to head: RequestHead, _ number: Int, network: UInt64
    ) -> ResponseStream? {
        var serializer = HTTP1ResponseSerializer(
            answersHead: answersHead, versionMinor: head.versionMinor,
            keepAliveSeconds: listener.configuration.announcedKeepAlive)
        var response = response
        if let body = serializer.body(of: response), !chargeOutput(body.count, to: network) {
            response = listener.responder.refusal(listener.overload, of: KnownRequest(head: head), from: client)
        }
        let stream = serializer.stream(of: response)
        let end = stream.map { ConnectionStateMachine.ReplyEnd.stream(isOpenEnded: $0.isOpenEnded) }
        guard let closes = machine.replied(to: number, end: end ?? .known) else { return nil }
        serializer.closes = closes
        known = nil
        send(response, serializer)
        guard stream == nil else { return machine.isStreaming ? stream : nil }
        outputHandedOver()
        return nil
    }

    /// Sends 503 with the time of a retry.
    private func refuseForNow(_ head: RequestHead) {
        let response = listener.responder.refusal(
            listener.overload, of: known ?? KnownRequest(head: head), from: client)
        handOver(response, to: head, machine.number, network: client.ip.network)
    }

    /// Sends a refusal of an invalid or unfinished request, and closes.
    func refuse(_ refusal: Refusal) {
        if machine.awaitsHead { answersHead = parser.readsHEAD }
        guard machine.refused() else { return close() }
        let request = known
        dropRequest()
        let responder = listener.responder
        send(
            request == nil
                ? responder.refusal(refusal, ofUnread: parser.unreadHead, from: client)
                : responder.refusal(refusal, of: request, from: client),
            HTTP1ResponseSerializer(answersHead: answersHead, closes: true))
        outputHandedOver()
    }
}

extension HTTPConnection {
    /// Waits for the body of an admitted request.
    private func awaitBody(_ request: IncomingRequest) {
        guard machine.admitted(machine.number, isIdentified: request.memoryOwner != nil) else { return }
        incoming = request
        guard request.head.framing != .none else { return }
        beginBodyWindow(at: 0)
        if request.head.expectsContinue, parser.bufferedByteCount == 0 {
            listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.continueResponse)
            sendWriteBuffer()
        }
    }

    /// Takes the body's received bytes. Returns whether the connection may continue with other input.
    func readBody() -> Bool {
        // Taken out, so that the body is appended in place.
        guard !isBodyWaiting, var request = incoming.take() else { return false }
        while let event = share.stepsLeft > 0 ? nextEvent() : nil {
            switch event {
            case .head: preconditionFailure("the parser ends a body before it begins a head")
            case .end:
                run(request)
                return true
            case .body(let bytes):
                share.noteStep()
                guard bytes.withUnsafeBytes({ append($0, to: &request) }) else { return false }
            }
        }
        guard machine.isReadingBody else { return false }
        incoming = request
        share.stepsLeft > 0 ? resumeReading() : giveWay()
        return false
    }

    /// Takes received bytes of the current body. Returns their number.
    func takeBody(of bytes: UnsafeRawBufferPointer) -> Int {
        guard machine.isReadingBody, !isBodyWaiting, var request = incoming.take() else { return 0 }
        let count: Int
        do throws(HTTP1Error) {
            count = try parser.takeBody(of: bytes)
        } catch {
            refuse(error.refusal)
            return bytes.count
        }
        if count > 0 {
            guard append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), to: &request) else {
                return isBodyWaiting ? count : bytes.count
            }
        }
        incoming = request
        return count
    }

    /// True when a body waits for memory of the reserve, which other bodies hold.
    var isBodyWaiting: Bool { incoming?.heldBack != nil }

    /// Appends bytes to a body, unless its sender exceeds its quota or has to wait. Returns whether the request
    /// continues.
    private func append(_ bytes: UnsafeRawBufferPointer, to request: inout IncomingRequest) -> Bool {
        let needed = request.body.capacity(
            adding: bytes.count, atMost: request.longest, isIdentified: request.memoryOwner != nil)
        let connection = LoopBound(self, loop: listener.loop)
        let wake: @Sendable () -> Void = { connection.loop.schedule { connection.value.memoryIsAskedFor() } }
        switch request.reserve(needed, in: listener.configuration.budgets, at: listener.loop.now, wake: wake) {
        case .granted:
            if request.lentSince == nil, request.charge?.exceedsQuota == true {
                request.lentSince = listener.loop.now
                beginBodyWindow(at: request.body.bytes.count)
            }
            request.body.append(bytes, capacity: needed)
            return true
        case .waiting:
            request.heldBack = ZeroizingBuffer(copying: bytes)
            incoming = request
            pauseReading()
            setDeadline(after: listener.configuration.loanWaitLimit)
            return false
        case .refused:
            request.heldBack = ZeroizingBuffer(copying: bytes)
            incoming = request
            identifyLate()
            return false
        }
    }

    /// Charges an incomplete body to its sender, or rejects it when the sender cannot be identified.
    private func identifyLate() {
        guard let identify = incoming?.plan.identify, incoming?.memoryOwner == nil, machine.needsIdentification() else {
            return refuse(listener.overload)
        }
        pauseReading()
        self.identify(identify)
    }

    /// Continues with a body after the identification of its sender.
    private func continueBody() {
        guard var request = incoming.take() else { return }
        // The received bytes are charged again, to the sender.
        request.charge = nil
        let heldBack = request.heldBack.take() ?? ZeroizingBuffer()
        guard heldBack.withUnsafeBytes({ append($0, to: &request) }) else { return }
        incoming = request
        beginBodyWindow(at: request.body.bytes.count)
    }

    /// Handles a wake-up of the budget: there may be memory for a waiting body, or others wait for this body's memory.
    private func memoryIsAskedFor() {
        guard machine.isReadingBody else { return }
        if incoming?.charge?.isRecalled ?? false {
            incoming?.heldBack = ZeroizingBuffer()
            return identifyLate()
        }
        if bodyEnd != nil { beginBodyWindow(at: incoming?.body.bytes.count ?? 0) }
        guard isBodyWaiting, var request = incoming.take(), let heldBack = request.heldBack.take() else { return }
        let patience = deadline
        guard heldBack.withUnsafeBytes({ append($0, to: &request) }) else {
            // A wake-up does not extend the time limit.
            if isBodyWaiting, let patience { setDeadline(at: patience) }
            return
        }
        incoming = request
        processInput()
        resumeReading()
    }

    /// The time at which a body must return borrowed memory, if others wait for it.
    private var bodyEnd: ContinuousClock.Instant? {
        guard let since = incoming?.lentSince, let charge = incoming?.charge, charge.isWanted else { return nil }
        return charge.isSlow ? since : since + listener.configuration.loanTime
    }

    private func beginBodyWindow(at count: Int) {
        bodyMeter = ProgressMeter(forgivesFirst: true)
        bodyMeter.begin(at: count)
        setDeadline(at: listener.configuration.bodyCheck(after: listener.loop.now, end: bodyEnd))
    }

    /// Returns whether a body has made enough progress since the last check, and may continue.
    func isBodyMoving() -> Bool {
        let (configuration, count) = (listener.configuration, incoming?.body.bytes.count ?? 0)
        guard machine.isReadingBody, !isBodyWaiting,
            bodyMeter.windowPassed(at: count, requiring: configuration.bodyProgress)
        else { return false }
        // A window that ends early requires nothing.
        if bodyEnd != nil { beginBodyWindow(at: count) } else { setDeadline(after: configuration.bodyWindow) }
        return true
    }

    /// Returns whether a body's time has ended because of other bodies: it waited without success, or held memory for
    /// too long while others waited.
    func isBodyOutOfTurn() -> Bool {
        guard machine.isReadingBody else { return false }
        if isBodyWaiting { return true }
        guard let end = bodyEnd, end <= listener.loop.now else { return false }
        incoming?.charge?.noteRecall()
        return true
    }
}

/// Checks progress: a number of bytes in each window of time. Pure: the caller reports the start and end of windows.
struct ProgressMeter {
    private var countAtStart = 0
    private var forgives: Bool

    /// - Parameter forgivesFirst: Requires nothing in the first window.
    init(forgivesFirst: Bool = false) { forgives = forgivesFirst }

    /// Begins a window at a number of bytes.
    mutating func begin(at count: Int) { countAtStart = count }

    /// Ends a window, and begins the next. Returns whether enough bytes moved in it.
    mutating func windowPassed(at count: Int, requiring required: Int) -> Bool {
        defer {
            countAtStart = count
            forgives = false
        }
        return forgives || count - countAtStart >= required
    }
}
