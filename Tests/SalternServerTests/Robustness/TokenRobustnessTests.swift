import Cryptography
import HTTPCore
import SalternTesting
import Testing

@testable import SalternServer

/// Whatever stands where a token, a cursor, a page or an identifier belongs, as long as it has the right length: the
/// answer is one that a client can understand, and never 5xx.
@Suite struct TokenRobustnessTests {
    /// Something that the server reads out of a text.
    struct Kind: Sendable, CustomTestStringConvertible {
        let name: String
        /// The bytes behind ``tag``.
        let byteCount: Int
        /// What the first bytes have to be for the rest to be looked at.
        var tag: [UInt8] = []
        let send: @Sendable (Visitor, [UInt8]) async throws -> [TestResponse]

        var testDescription: String { name }

        /// Bytes at the bounds of numbers, with one byte wrong, and random ones.
        func samples() -> [[UInt8]] {
            let patterns: [UInt8] = [0x00, 0xFF, 0x7F, 0x80]
            let uniform = patterns.map { [UInt8](repeating: $0, count: byteCount) }
            let bounds = patterns.map { first in
                [first] + [UInt8](repeating: first == 0x7F ? 0xFF : 0x00, count: max(byteCount - 1, 0))
            }
            let random = (0..<16).map { _ in SecureRandom.bytes(byteCount) }
            let tagged = (uniform + bounds + random).map { tag + $0.prefix(byteCount) }
            return tagged + (0..<4).map { _ in SecureRandom.bytes(tag.count + byteCount) }
        }
    }

    /// Somebody with an account, and something of everything.
    struct Visitor: Sendable {
        let app: TestApplication
        let account: TestAccount
        let item: String
        let share: TestShare
        let rotation: String

        var client: TestClient { account.client }

        init(_ app: TestApplication) async throws {
            self.app = app
            account = try await app.register()
            item = try await account.createItem()
            share = try await TestShare(account.client)
            let opened = try await account.client.post(
                "/v1/rotations", ["currentPasswordKey": .string(account.passwordKey)])
            rotation = try #require(opened.string("id"))
        }
    }

    @Test(arguments: Self.kinds)
    func `random bytes of the right length are never an error of the server`(_ kind: Kind) async throws {
        try await TestApplication.with { app in
            let visitor = try await Visitor(app)
            for bytes in kind.samples() {
                for reply in try await kind.send(visitor, bytes) {
                    #expect(reply.status < 500, "\(kind.name) \(Hex.encode(bytes)): \(reply)")
                }
                app.clock.advance(by: .seconds(61))
            }
            #expect(try await visitor.client.get(visitor.item).status == 200)
            let errors = app.log.lines.filter { $0.contains("error\"") && $0.contains("database") }
            #expect(errors.isEmpty, "\(errors.prefix(3))")
        }
    }

    @Test(arguments: [SecurityLogPosition.newest.text, SharePosition.first.text])
    func `a page at a moment that is none is a bad request`(_ page: String) async throws {
        try await TestApplication.with { app in
            let client = try await app.register().client
            for target in ["/v1/account/events", "/v1/shares"] {
                let reply = try await client.get("\(target)?page=\(page)")
                #expect(reply.status == 400, "\(reply)")
                #expect(reply.code == "invalid_parameter")
            }
        }
    }
}
