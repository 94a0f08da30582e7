import Cryptography
import Foundation
import SalternTesting
import Synchronization

@testable import SalternClient

/// A server that keeps every account keyring that it is sent, refuses some of them, and shows one in the place of another.
final class LyingServer: HTTPTransport {
    /// What becomes of a request that has a keyring.
    enum Refusal: CaseIterable {
        /// It is answered with a problem, and not carried out.
        case problem
        /// It is not answered, and not carried out.
        case silence
        /// It is carried out, and not answered.
        case lostReply
    }

    private struct State {
        var refusal: Refusal?
        var kept: [String] = []
        var shown: String?
        var hasShown = false
    }

    private let inner: any HTTPTransport
    private let state = Mutex(State())

    init(_ inner: any HTTPTransport) { self.inner = inner }

    /// Refuses what has a keyring from now on; nil carries it out.
    func refuse(_ refusal: Refusal?) { state.withLock { $0.refusal = refusal } }

    /// Shows this one in the place of the account's keyring from now on; nil for the honest one.
    func show(_ keyring: [UInt8]?) {
        state.withLock { state in
            state.shown = keyring.map { Data($0).base64EncodedString() }
            state.hasShown = false
        }
    }

    /// Whether the keyring of ``show(_:)`` was in a reply.
    var hasShown: Bool { state.withLock { $0.hasShown } }

    /// The keyrings that were sent, the oldest first.
    var kept: [[UInt8]] { state.withLock { $0.kept }.compactMap { Data(base64Encoded: $0).map { [UInt8]($0) } } }

    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        let keyring = Self.keyring(of: request)
        let refusal = state.withLock { state in
            if let keyring { state.kept.append(keyring) }
            return keyring == nil ? nil : state.refusal
        }
        switch refusal {
        case .problem:
            let body = #"{"type":"about:blank","title":"no","status":422,"code":"out_of_range"}"#
            return HTTPReply(head: HTTPReplyHead(status: 422, fields: []), body: Array(body.utf8))
        case .silence: throw .connectionLost
        case .lostReply:
            _ = try await inner.send(request)
            throw .connectionLost
        case nil: break
        }
        let reply = try await inner.send(request)
        guard let shown = state.withLock({ $0.shown }), request.target != "/v1/recoveries" else { return reply }
        let text = String(decoding: reply.body, as: UTF8.self)
        guard text.contains(#""keyring":""#) else { return reply }
        state.withLock { $0.hasShown = true }
        let lie = text.replacing(/"keyring":"[^"]*"/, with: #""keyring":"\#(shown)""#)
        return HTTPReply(head: reply.head, body: Array(lie.utf8))
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream {
        try await inner.stream(request)
    }

    /// The account's keyring, which has another name where the one that a printed code opens is there, too.
    private static func keyring(of request: HTTPRequest) -> String? {
        guard let body = request.body.map({ $0.withUnsafeBytes { Data($0) } }),
            let members = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        else { return nil }
        return (members["accountKeyring"] ?? members["keyring"]) as? String
    }
}
