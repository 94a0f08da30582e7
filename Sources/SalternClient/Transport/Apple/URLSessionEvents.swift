internal import Foundation

/// Receives the events of a session's tasks, one at a time, and forwards each to the task's transfer.
final class URLSessionEvents: NSObject, URLSessionDataDelegate {
    private let trust: ServerTrust
    private let transfers = Locked<[Int: URLSessionTransfer]>([:])

    init(_ trust: ServerTrust) { self.trust = trust }

    /// Registers a transfer. Call it before the task begins.
    func add(_ transfer: URLSessionTransfer, for task: URLSessionTask) {
        transfers.withLock { $0[task.taskIdentifier] = transfer }
    }

    private func transfer(_ task: URLSessionTask) -> URLSessionTransfer? {
        transfers.withLock { $0[task.taskIdentifier] }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        // The method without a task is not implemented, so the system calls this one.
        guard challenge.protectionSpace.authenticationMethod == NSURLAuthenticationMethodServerTrust else {
            return completionHandler(.performDefaultHandling, nil)
        }
        guard let presented = challenge.protectionSpace.serverTrust else {
            transfer(task)?.end(.failure(.untrustedCertificate))
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        if let refusal = trust.refusal(of: presented) {
            transfer(task)?.end(.failure(refusal))
            return completionHandler(.cancelAuthenticationChallenge, nil)
        }
        completionHandler(.useCredential, URLCredential(trust: presented))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        completionHandler(nil)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        completionHandler(transfer(dataTask)?.receive(response) == true ? .allow : .cancel)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        transfer(dataTask)?.receive(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let transfer = transfers.withLock { $0.removeValue(forKey: task.taskIdentifier) }
        transfer?.end(error.map { .failure(TransportError($0)) } ?? .success(()))
    }
}

extension TransportError {
    /// Converts the system's error of a failed task.
    fileprivate init(_ error: any Error) {
        switch (error as? URLError)?.code {
        case .cannotFindHost, .dnsLookupFailed, .cannotConnectToHost, .notConnectedToInternet, .secureConnectionFailed:
            self = .unreachable
        case .timedOut: self = .timedOut
        case .serverCertificateUntrusted, .serverCertificateHasBadDate, .serverCertificateHasUnknownRoot,
            .serverCertificateNotYetValid:
            self = .untrustedCertificate
        case .badServerResponse, .cannotParseResponse, .cannotDecodeRawData, .cannotDecodeContentData,
            .dataLengthExceedsMaximum:
            self = .unacceptableReply
        case .badURL, .unsupportedURL: self = .configuration(.request)
        default: self = .connectionLost
        }
    }
}
