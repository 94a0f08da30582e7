import Foundation
import SalternClient

/// A server that registers one account, and is out of reach for everything else.
nonisolated final class SilentServer: HTTPTransport {
    func send(_ request: HTTPRequest) async throws(TransportError) -> HTTPReply {
        let body: String
        switch (request.method, request.target) {
        case (.get, "/v1/service"): body = Self.service
        case (.post, "/v1/accounts"): body = Self.session
        default: throw .unreachable
        }
        let status = request.method == .post ? 201 : 200
        return HTTPReply(head: HTTPReplyHead(status: status, fields: []), body: Array(body.utf8))
    }

    func stream(_ request: HTTPRequest) async throws(TransportError) -> HTTPReplyStream { throw .unreachable }
}

extension SilentServer {
    nonisolated static let saltPrefix = "com.example.notes:"

    private nonisolated static let service = """
        {"name":"silent","saltPrefix":"\(saltPrefix)","registration":"open","formats":["saltern-1"],
        "kdf":{"algorithm":"PBKDF2-HMAC-SHA256","iterations":10000,"minimumIterations":10000,"maximumIterations":10000000,
        "keyLength":32},"shares":{"formats":["aes-256-gcm"],"anonymous":false},"limits":{"useridBytes":254,
        "keyringBytes":65536,"itemRequestBytes":16777216,"itemsPerPage":500,"changesPerPage":500,"batchOperations":500,
        "batchRequestBytes":33554432},"pins":{"active":[],"backup":[]}}
        """

    private nonisolated static var session: String {
        """
        {"accountId":"\(AccountID.random())","session":{"id":"\(SessionID.random())","token":"slt_silent",
        "expiresAt":"2099-01-01T00:00:00Z"}}
        """
    }
}
