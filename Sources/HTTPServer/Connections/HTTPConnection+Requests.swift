internal import EventLoop
internal import HTTPCore

/// A request whose head has been admitted and whose body is arriving.
struct IncomingRequest {
    let head: RequestHead
    let plan: Plan
    var body = IncomingBody()
}

extension HTTPConnection {
    /// Requests of one connection that are looked at before the others have their turn.
    private static let requestsPerTurn = 16

    /// Takes from the parser whatever can be taken now.
    func processInput() {
        var admitted = 0
        while true {
            switch phase {
            case .idle, .readingHead:
                // A client that does not read its replies gets no further ones.
                guard !hasPendingOutput else { return }
                guard admitted < Self.requestsPerTurn else { return continueNextTurn() }
                guard let event = nextEvent() else { return waitForHead() }
                guard case .head(let head) = event else { continue }
                admitted += 1
                admit(head)
            case .readingBody(var request):
                // Taken out of `phase` so that the body is appended in place.
                phase = .readingHead
                let isComplete = collect(&request)
                guard case .readingHead = phase else { return }
                guard isComplete else {
                    phase = .readingBody(request)
                    return resumeReading()
                }
                run(request)
            case .handshaking, .responding, .streaming, .finishing, .lingering, .closed:
                return
            }
        }
    }

    private func nextEvent() -> HTTP1Event? {
        do throws(HTTP1Error) {
            return try parser.next()
        } catch {
            refuse(error.refusal)
            return nil
        }
    }

    private func waitForHead() {
        resumeReading()
        switch phase {
        case .idle where parser.bufferedByteCount > 0:
            phase = .readingHead
            setDeadline(after: listener.configuration.headerDeadline)
        default: break
        }
    }

    private func admit(_ head: RequestHead) {
        let configuration = listener.configuration
        guard !isOverLimit, listener.requestsInFlight < configuration.maximumConcurrentRequestsPerLoop else {
            return refuse(.overloaded(retryAfter: configuration.retryAfterOverload))
        }
        switch listener.responder.admit(head, from: client) {
        case .refuse(let response):
            let hasBody = head.framing != .none
            // A refusal is no stream.
            _ = send(response, to: head, closing: hasBody)
            hasBody ? finish(lingers: true) : replyFinished()
        case .accept(let plan):
            parser.bodyLimit = plan.bodyLimit
            phase = .readingBody(IncomingRequest(head: head, plan: plan))
            guard head.framing != .none else { return }
            setDeadline(after: plan.bodyDeadline)
            if head.expectsContinue, parser.bufferedByteCount == 0 {
                listener.writeBuffer.append(contentsOf: HTTP1ResponseSerializer.continueResponse)
                sendWriteBuffer()
            }
        }
    }

    /// Takes the body's bytes that have come. Returns whether the body is complete.
    private func collect(_ request: inout IncomingRequest) -> Bool {
        while let event = nextEvent() {
            switch event {
            case .head: preconditionFailure("the parser ends a body before it begins a head")
            case .end: return true
            case .body(let bytes):
                guard bytes.withUnsafeBytes({ append($0, to: &request) }) else { return false }
            }
        }
        return false
    }

    /// Takes what was read as far as it belongs to the body that is arriving. Returns how many bytes that are.
    func takeBody(of bytes: UnsafeRawBufferPointer) -> Int {
        guard case .readingBody(var request) = phase else { return 0 }
        let count: Int
        do throws(HTTP1Error) {
            count = try parser.takeBody(of: bytes)
        } catch {
            refuse(error.refusal)
            return bytes.count
        }
        if count == 0 { return 0 }
        // Taken out of `phase` so that the body is appended in place.
        phase = .readingHead
        guard append(UnsafeRawBufferPointer(rebasing: bytes[..<count]), to: &request) else { return bytes.count }
        phase = .readingBody(request)
        return count
    }

    /// Adds bytes to a body, unless the loop holds as much as it may. Returns whether the request goes on.
    private func append(_ bytes: UnsafeRawBufferPointer, to request: inout IncomingRequest) -> Bool {
        let needed = request.body.capacity(adding: bytes.count, framing: request.head.framing)
        let charge = needed > IncomingBody.freeBytes ? needed : 0
        if charge > chargedBodyBytes {
            let total = listener.bodyBytes - chargedBodyBytes + charge
            guard total <= listener.configuration.maximumBodyBytesPerLoop else {
                refuse(.overloaded(retryAfter: listener.configuration.retryAfterOverload))
                return false
            }
            listener.bodyBytes = total
            chargedBodyBytes = charge
        }
        request.body.append(bytes, capacity: needed)
        return true
    }

    /// The current request's body is held no longer. Harmless when repeated.
    func releaseBody() {
        listener.bodyBytes -= chargedBodyBytes
        chargedBodyBytes = 0
    }

    private func run(_ request: IncomingRequest) {
        phase = .responding
        requestNumber += 1
        takeRequestSlot()
        setDeadline(after: request.plan.handlerDeadline)
        let number = requestNumber
        let plan = request.plan
        let body = request.body.bytes
        let head = request.head
        let connection = LoopBound(self, loop: listener.loop)
        task = Task(executorPreference: listener.loop) {
            let response = await plan.respond(body)
            guard let stream = connection.value.reply(number, response, to: head, plan) else { return }
            do {
                try await stream.produce(StreamWriter(connection: connection, requestNumber: number))
                connection.value.streamFinished(number, succeeded: true)
            } catch {
                connection.value.streamFinished(number, succeeded: false)
            }
        }
    }

    /// Sends the reply, or its head when a stream follows, which is returned.
    private func reply(_ number: Int, _ response: Response, to head: RequestHead, _ plan: Plan) -> ResponseStream? {
        guard number == requestNumber, case .responding = phase else { return nil }
        // Without chunks only the connection's end can be the body's end.
        let needsClose = head.versionMinor == 0 && response.body.count == nil
        let closing = !head.wantsKeepAlive || listener.isDraining || needsClose
        let stream = send(response, to: head, closing: closing)
        if let stream {
            if case .closed = phase { return nil }
            beginStream(
                OutgoingStream(
                    isOpenEnded: stream.isOpenEnded, isChunked: head.versionMinor > 0, closesAfterwards: closing,
                    pieceDeadline: plan.handlerDeadline))
            return isStreaming(number) ? stream : nil
        }
        task = nil
        releaseRequestSlot()
        guard !closing else {
            finish(lingers: head.framing != .none)
            return nil
        }
        replyFinished()
        processInput()
        return nil
    }

    func replyFinished() {
        if case .closed = phase { return }
        phase = .idle
        setDeadline(
            after: hasPendingOutput ? listener.configuration.writeDeadline : listener.configuration.idleDeadline)
    }

    /// From here on a body is sent from where it is instead of being copied behind its head.
    private static let bodyWorthNoCopy = 64 * 1_024

    /// Sends a reply. Returns the stream that has to follow its head.
    private func send(_ response: Response, to head: RequestHead, closing: Bool) -> ResponseStream? {
        let serializer = HTTP1ResponseSerializer(
            answersHead: head.method == .head, closes: closing, versionMinor: head.versionMinor)
        if let body = serializer.body(of: response), body.count >= Self.bodyWorthNoCopy {
            serializer.appendHead(of: response, date: listener.date, to: &listener.writeBuffer)
            sendWriteBuffer(followedBy: body)
        } else {
            serializer.append(response, date: listener.date, to: &listener.writeBuffer)
            sendWriteBuffer()
        }
        return serializer.stream(of: response)
    }

    /// Answers something that is no request, or one that could not be finished, and closes.
    private func refuse(_ refusal: Refusal) {
        cancelTask()
        releaseBody()
        let response = listener.responder.refusal(refusal, from: client)
        HTTP1ResponseSerializer(closes: true).append(response, date: listener.date, to: &listener.writeBuffer)
        sendWriteBuffer()
        finish(lingers: true)
    }

    func deadlinePassed() {
        switch phase {
        case .readingHead: refuse(.headerTimeout)
        case .readingBody: refuse(.bodyTimeout)
        case .responding: refuse(.handlerTimeout)
        // The head has gone: that something is missing can only be said by closing.
        case .handshaking, .idle, .streaming, .finishing, .lingering: close()
        case .closed: break
        }
    }
}
