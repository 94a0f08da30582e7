import Cryptography
import Testing

@testable import SalternClient

struct PasskeyKeysTests {
    private let account = AccountID.random()
    private let id = SecureRandom.bytes(64)
    private let output = SecureRandom.secureBytes(32)
    private let unlockKey = SecureRandom.secureBytes(32)

    private func keyring(_ count: Int = 1) throws -> Keyring {
        let passkeys = try (0..<count).map { number in
            try PasskeyKeys.new(for: [UInt8(number)] + id, output: output, account: account).keys
        }
        return Keyring.new().changed { $0.passkeys = passkeys }
    }

    @Test func `a keyring has format 2 while a passkey unlocks it`() throws {
        let plain = Keyring.new().encoded().withUnsafeBytes { [UInt8]($0) }
        #expect(plain[0] == 1)
        for count in [1, 20] {
            let keyring = try keyring(count)
            let encoded = keyring.encoded().withUnsafeBytes { [UInt8]($0) }
            #expect(encoded[0] == 2)
            let decoded = try Keyring(encoded: SecureBytes(copying: encoded))
            #expect(decoded.encoded() == keyring.encoded())
            #expect(decoded.passkeys.map(\.id) == keyring.passkeys.map(\.id))
            #expect(decoded.changed { $0.passkeys = [] }.encoded().withUnsafeBytes { $0[0] } == 1)
        }
    }

    @Test func `a sealed keyring confirms the userid with which it was sealed, and no other`() throws {
        let password = KnownPassword(unlockKey: unlockKey)
        for count in [0, 1] {
            var keyring = try keyring(count)
            let earlier = try Keyring(sealed: keyring.sealed(under: password), openedBy: password)
            #expect(earlier.useridMark == nil)
            keyring.useridMark = UseridMark(of: "ada")
            let opened = try Keyring(sealed: keyring.sealed(under: password), openedBy: password)
            #expect(opened.useridMark == UseridMark(of: "ada"))
            #expect(opened.useridMark != UseridMark(of: "eve"))
            // Earlier kits ignore it.
            #expect(opened.encoded() == earlier.encoded() && opened.digest == earlier.digest)
        }
    }

    @Test func `a damaged format 2 is refused`() throws {
        let encoded = try keyring(2).encoded().withUnsafeBytes { [UInt8]($0) }
        func isRefused(_ bytes: [UInt8]) -> Bool { (try? Keyring(encoded: SecureBytes(copying: bytes))) == nil }
        for count in 0..<encoded.count { #expect(isRefused(Array(encoded[..<count]))) }
        #expect(isRefused(encoded + [0]))
        // Format 1 with passkeys, format 2 without, a later format, and more passkeys than a server has.
        #expect(isRefused([1] + encoded[1...]))
        #expect(isRefused([3] + encoded[1...]))
        let plain = Keyring.new().encoded().withUnsafeBytes { [UInt8]($0) }
        #expect(isRefused([2] + plain[1...]))
        #expect(isRefused([2] + plain[1...] + [0]))
        #expect(isRefused(try keyring(21).encoded().withUnsafeBytes { [UInt8]($0) }))
        let twice = try keyring().changed { $0.passkeys += $0.passkeys }
        #expect(isRefused(twice.encoded().withUnsafeBytes { [UInt8]($0) }))
    }

    @Test func `a passkey opens every box that was sealed to its public half, and no other secret does`() throws {
        let (keys, sealed) = try PasskeyKeys.new(for: id, output: output, account: account)
        for counter in [2, 3] as [UInt64] {
            let box = try keys.box(of: unlockKey, counter: counter, account: account)
            #expect(box.count <= 1_024 && sealed.count <= 1_024)
            #expect(try PasskeyKeys.open(box, sealed, of: id, output: output, account: account).unlockKey == unlockKey)
            for (id, output, account) in [
                (id, SecureRandom.secureBytes(32), account), (id + [0], output, account), (id, output, .random()),
            ] {
                #expect(throws: Keyring.Failure.notAuthentic) {
                    try PasskeyKeys.open(box, sealed, of: id, output: output, account: account)
                }
            }
            for index in box.indices {
                var changed = box
                changed[index] ^= 1
                #expect(throws: Keyring.Failure.self) {
                    try PasskeyKeys.open(changed, sealed, of: id, output: output, account: account)
                }
            }
        }
    }

    @Test func `a server that seals to the public key itself is not believed`() throws {
        let (keys, sealed) = try PasskeyKeys.new(for: id, output: output, account: account)
        let forged = PasskeyKeys(
            id: id, publicKey: keys.publicKey, authenticationKey: SecureRandom.secureBytes(32))
        let box = try forged.box(of: unlockKey, counter: 9, account: account)
        #expect(throws: Keyring.Failure.notAuthentic) {
            try PasskeyKeys.open(box, sealed, of: id, output: output, account: account)
        }
    }

    @Test func `a passkey has one pair of keys, and its digest tells pairs apart`() throws {
        var passkeys = try keyring(3).passkeys
        let added = try PasskeyKeys.new(for: [9], output: output, account: account).keys
        let again = try PasskeyKeys.new(for: passkeys[2].id, output: output, account: account).keys
        let before = passkeys[2]
        PasskeyKeys.add(added, to: &passkeys)
        PasskeyKeys.add(again, to: &passkeys)
        #expect(passkeys.count == 4 && passkeys.last?.publicKey == again.publicKey)
        #expect(again.digest.count == 32 && again.digest != before.digest)
        let (other, sealed) = try PasskeyKeys.new(for: id, output: output, account: account)
        let box = try other.box(of: unlockKey, counter: 2, account: account)
        let opened = try PasskeyKeys.open(box, sealed, of: id, output: output, account: account).keys
        #expect(opened.digest == other.digest)
    }
}
