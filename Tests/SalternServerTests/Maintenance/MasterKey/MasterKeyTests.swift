import Cryptography
import Postgres
import Testing

@testable import SalternServer

@Suite struct MasterKeyTests {
    private let key = MasterKey.random()
    private let account = AccountID.random()
    private let secret = Array("a secret of twenty b".utf8)

    private func opened(_ key: MasterKey, _ sealed: [UInt8], _ place: SealedPlace) throws(MasterKeyError) -> [UInt8] {
        try key.open(sealed, for: place).withUnsafeBytes { [UInt8]($0) }
    }

    @Test func `what was sealed opens in the same place`() throws {
        let sealed = try key.seal(secret, for: .oneTimePasswords(of: account))
        #expect(sealed.count == secret.count + 33)
        #expect(try opened(key, sealed, .oneTimePasswords(of: account)) == secret)
        #expect(try key.seal(secret, for: .oneTimePasswords(of: account)) != sealed)
    }

    @Test func `it does not open in another account's row`() throws {
        let sealed = try key.seal(secret, for: .oneTimePasswords(of: account))
        #expect(throws: MasterKeyError.notAuthentic) {
            try key.open(sealed, for: .oneTimePasswords(of: .random()))
        }
    }

    @Test func `each of its bytes counts`() throws {
        let sealed = try key.seal(secret, for: .oneTimePasswords(of: account))
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: MasterKeyError.self, "byte \(index)") {
                try key.open(changed, for: .oneTimePasswords(of: account))
            }
        }
        for count in sealed.indices {
            #expect(throws: MasterKeyError.self, "\(count) bytes") {
                try key.open(Array(sealed.prefix(count)), for: .oneTimePasswords(of: account))
            }
        }
    }

    @Test func `after a rotation the old key opens and the new one seals`() throws {
        let before = try key.seal(secret, for: .oneTimePasswords(of: account))
        let rotated = try key.rotated()
        #expect(rotated.ids.count == 2)
        #expect(rotated.ids[1] == key.ids[0])
        #expect(try opened(rotated, before, .oneTimePasswords(of: account)) == secret)
        let after = try rotated.seal(secret, for: .oneTimePasswords(of: account))
        #expect(throws: MasterKeyError.unknownKey(rotated.ids[0])) {
            try key.open(after, for: .oneTimePasswords(of: account))
        }
        #expect(after.starts(with: rotated.activeHeader))
        #expect(!before.starts(with: rotated.activeHeader))
        #expect(rotated.removing([key.ids[0]]).ids == [rotated.ids[0]])
        #expect(rotated.removing([rotated.ids[0]]).ids == rotated.ids)
    }

    @Test func `derived keys differ by label, and outlive a rotation as the second one`() throws {
        let message: [UInt8] = [1, 2, 3]
        func codes(_ key: MasterKey, _ label: String) -> [SHA256Digest] {
            key.subkeys(label).map { $0.authenticationCode(for: message) }
        }
        #expect(codes(key, "a") == codes(key, "a"))
        #expect(codes(key, "a") != codes(key, "b"))
        let rotated = try key.rotated()
        #expect(codes(rotated, "a").count == 2)
        #expect(codes(rotated, "a")[1] == codes(key, "a")[0])
        #expect(codes(rotated, "a")[0] != codes(key, "a")[0])
    }

    @Test func `derivation and sealing stay as they are, or everything sealed would be lost`() throws {
        let fixed = try MasterKey(text: SecureBytes(copying: Array((Base64.encodeToString(Array(0..<32))).utf8)))
        #expect(fixed.ids.map(\.description) == ["630dcd29"])
        let code = fixed.subkeys("test")[0].authenticationCode(for: Array("message".utf8))
        #expect(Hex.encode(code) == "eba52c6c8161fc6e1e60010193505871b38f67d600e51e027cb1301315181974")
        let account = AccountID(try #require(UUID(bytes: Array(0..<16))))
        let sealed = try #require(
            Hex.decode(
                "01630dcd29000102030405060708090a0bf397a0fbfcbce8f61b0698c233800b1978f10ca431e9ebcbe46c3b0c527c21a0ec9c7320"
            ))
        #expect(try opened(fixed, sealed, .oneTimePasswords(of: account)) == secret)
    }
}

@Suite struct MasterKeyTextTests {
    private func parsed(_ text: String) throws(MasterKeyError) -> MasterKey {
        try MasterKey(text: SecureBytes(copying: text.utf8))
    }

    private func line(_ byte: UInt8) -> String { Base64.encodeToString([UInt8](repeating: byte, count: 32)) }

    @Test func `what is written is read`() throws {
        let key = try MasterKey.random().rotated().rotated()
        let again = try MasterKey(text: key.text)
        #expect(again.ids == key.ids)
        #expect(zip(again.keys, key.keys).allSatisfy { $0.secret == $1.secret })
    }

    @Test func `comments and empty lines say nothing, and the last line needs no end`() throws {
        let key = try parsed("# keys\n\n\(line(1))\n# older\n\(line(2))")
        #expect(key.keys.map(\.secret.count) == [32, 32])
        #expect(key.active.secret == SecureBytes(copying: [UInt8](repeating: 1, count: 32)))
    }

    @Test func `a line may end with CR LF`() throws {
        #expect(try parsed("# keys\r\n\r\n\(line(1))\r\n\(line(2))\r\n").keys.count == 2)
        #expect(throws: MasterKeyError.invalidLine(1)) { try parsed("\(line(1))\r\r\n") }
    }

    @Test func `anything else is refused with the number of its line`() {
        #expect(throws: MasterKeyError.noKey) { try parsed("") }
        #expect(throws: MasterKeyError.noKey) { try parsed("# nothing\n\n") }
        #expect(throws: MasterKeyError.invalidLine(2)) { try parsed("\(line(1))\nkey\n") }
        #expect(throws: MasterKeyError.invalidLine(1)) { try parsed("\(line(1)) \n") }
        #expect(throws: MasterKeyError.invalidLine(1)) { try parsed(Base64.encodeToString([1, 2, 3])) }
        #expect(throws: MasterKeyError.invalidLine(1)) {
            try parsed(Base64.encodeToString([UInt8](repeating: 1, count: 33)))
        }
        #expect(throws: MasterKeyError.repeatedKey(line: 3)) { try parsed("\(line(1))\n\(line(2))\n\(line(1))\n") }
        #expect(throws: MasterKeyError.tooManyKeys) { try parsed((0..<17).map { line($0) }.joined(separator: "\n")) }
    }

    @Test func `there is room for sixteen keys`() throws {
        var key = MasterKey.random()
        for _ in 1..<MasterKey.maximumKeys { key = try key.rotated() }
        #expect(throws: MasterKeyError.tooManyKeys) { try key.rotated() }
        #expect(try MasterKey(text: key.text).ids == key.ids)
    }

    @Test func `it prints nothing of a key`() {
        let key = MasterKey.random()
        let text = key.keys[0].secret.withUnsafeBytes { Base64.encodeToString($0) }
        #expect(!"\(key)".contains(text))
        #expect(!String(reflecting: key).contains(text))
    }
}
