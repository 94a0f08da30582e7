import Cryptography
import HTTPCore
import Postgres
import Testing

@testable import SalternServer

@Suite struct SigningKeysTests {
    private let now = Timestamp(unixSeconds: 1_800_000_000)
    private let day = Duration.seconds(86_400)

    @Test func `the thumbprint is that of RFC 7638, and the header names the key`() throws {
        let key = try SigningKey.generate(usableFrom: now)
        let point = key.stored.publicKey.bytes
        let (x, y) = (Base64URL.encodeToString(Array(point[1..<33])), Base64URL.encodeToString(Array(point[33...])))
        let text = "{\"crv\":\"P-256\",\"kty\":\"EC\",\"x\":\"\(x)\",\"y\":\"\(y)\"}"
        #expect(key.id == Base64URL.encodeToString(SHA256.hash(text.utf8).bytes))
        let header = try JSONParser().parse(Base64URL.decode(key.header.utf8))
        #expect(header == ["alg": "ES256", "typ": "at+jwt", "kid": .string(key.id)])
    }

    @Test func `the next key is published a day before it signs, and the replaced one goes a day later`() throws {
        let first = try SigningKeys.first(at: now)
        let rotated = try first.rotated(at: now)
        #expect(rotated.keys.count == 2)
        #expect(rotated.active(at: now).id == first.keys[0].id)
        #expect(rotated.active(at: now + day - .seconds(1)).id == first.keys[0].id)
        #expect(rotated.active(at: now + day).id == rotated.keys[1].id)
        #expect(rotated.pruned(at: now + day + day - .seconds(1)).keys.count == 2)
        #expect(rotated.pruned(at: now + day + day).keys.map(\.id) == [rotated.keys[1].id])
        #expect(throws: SigningKeyError.nextKeyWaits(rotated.keys[1].id)) { try rotated.rotated(at: now) }
        // A clock that is behind still signs.
        #expect(first.active(at: now - day).id == first.keys[0].id)
        #expect(first.pruned(at: now - day).keys.count == 1)
    }

    @Test func `a file has at most sixteen keys`() throws {
        var keys = try SigningKeys.first(at: now)
        for index in 1..<16 { keys = try keys.rotated(at: now + day * index) }
        #expect(throws: SigningKeyError.tooManyKeys) { try keys.rotated(at: now + day * 16) }
        #expect(try SigningKeys(text: keys.text).keys.map(\.id) == keys.keys.map(\.id))
    }

    @Test func `the text of a file is read again, and damage is refused with its line`() throws {
        let keys = try SigningKeys.first(at: now).rotated(at: now)
        let again = try SigningKeys(text: keys.text)
        #expect(again.keys.map(\.id) == keys.keys.map(\.id))
        #expect(again.keys.map(\.usableFrom) == keys.keys.map(\.usableFrom))
        let text = keys.text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        let lines = text.split(separator: "\n").map(String.init)
        #expect(lines.count == 3 && lines[1].hasPrefix("2027-01-15T08:00:00Z "))
        func error(_ lines: [String]) -> SigningKeyError? {
            do {
                _ = try SigningKeys(text: SecureBytes(copying: Array(lines.joined(separator: "\n").utf8)))
                return nil
            } catch { return error }
        }
        #expect(error([lines[1]]) == nil)
        #expect(error(["# nothing"]) == .noKey)
        // Lines that an editor has ended with CR LF, an empty one too.
        #expect(error((lines + ["", ""]).map { $0 + "\r" }) == nil)
        #expect(error([lines[1] + "\r\r"]) == .invalidLine(1))
        #expect(error([lines[2], lines[1]]) == .invalidLine(2))
        #expect(error([lines[1], lines[1]]) == .invalidLine(2))
        // The same key with another time.
        #expect(error([lines[1], "2027-01-16T08:00:00Z " + lines[1].dropFirst(21)]) == .repeatedKey(2))
        #expect(error([lines[0], String(lines[1].dropLast(4))]) == .invalidLine(2))
        // The number of another point.
        let other = try SigningKeys.first(at: now).text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        let mixed = lines[1].prefix(80) + other.split(separator: "\n")[1].dropFirst(80)
        #expect(error([String(mixed)]) == .invalidLine(1))
        #expect(error(["2027-01-15 08:00:00Z" + lines[1].dropFirst(20)]) == .invalidLine(1))
    }

    @Test func `a token identifier opens for its audience and key only`() throws {
        let (billing, push) = (try #require(AudienceName("billing")), try #require(AudienceName("push")))
        let key = PairwiseKey.random()
        let identifier = TokenIdentifier(accountID: .random(), sessionID: .random())
        let text = try identifier.sealed(for: billing, with: key)
        #expect(TokenIdentifier(text, for: billing, with: key) == identifier)
        #expect(try identifier.sealed(for: billing, with: key) != text)
        #expect(TokenIdentifier(text, for: push, with: key) == nil)
        #expect(TokenIdentifier(text, for: billing, with: .random()) == nil)
        #expect(TokenIdentifier(String(text.dropLast()), for: billing, with: key) == nil)
        #expect(TokenIdentifier("", for: billing, with: key) == nil)
    }
}
