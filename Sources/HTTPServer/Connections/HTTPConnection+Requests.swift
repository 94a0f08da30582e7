internal import EventLoop
internal import HTTPCore

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
        if request.lentSince != nil || request.memoryOwner == nil { request.charge?.noteArrival() }
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
