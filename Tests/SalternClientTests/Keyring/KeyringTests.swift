import Cryptography
import Testing

@testable import SalternClient

struct KeyringTests {
    private func stretched() -> StretchedPassword { StretchedPassword(SecureRandom.secureBytes(64)) }

    @Test func `a keyring opens with its password and no other`() throws {
        let password = stretched()
        let keyring = Keyring.new().changed { $0.dataKeys.append(.random()) }
        let sealed = try keyring.sealed(under: password)
        let opened = try Keyring(sealed: sealed, openedBy: password)
        #expect(opened.encoded() == keyring.encoded())
        #expect(opened.counter == 2)
        #expect(throws: Keyring.Failure.notAuthentic) { try Keyring(sealed: sealed, openedBy: stretched()) }
        #expect(throws: Keyring.Failure.self) { try Keyring(sealed: [1, 2, 3], openedBy: password) }
    }

    @Test func `a truncated or longer encoding is refused`() throws {
        let encoded = Keyring.new().encoded().withUnsafeBytes { [UInt8]($0) }
        _ = try Keyring(encoded: SecureBytes(copying: encoded))
        for count in 0..<encoded.count {
            #expect(throws: Keyring.Failure.malformed) { try Keyring(encoded: SecureBytes(copying: encoded[..<count])) }
        }
        #expect(throws: Keyring.Failure.malformed) { try Keyring(encoded: SecureBytes(copying: encoded + [0])) }
    }

    @Test func `a keyring is compared with the confirmed one, with no more reads than needed`() throws {
        let keyring = Keyring.new()
        func order(_ counter: UInt64, isRetired: Bool? = nil, digest: [UInt8]?? = nil) throws -> KeyringOrder {
            try KeyringOrder.of(keyring, counter: counter, isRetired: try read(isRetired)) { () throws(VaultError) in
                try read(digest)
            }
        }
        func read<Value>(_ value: Value?) throws(VaultError) -> Value {
            guard let value else { throw .locked }
            return value
        }
        let counter = keyring.counter
        #expect(try order(counter + 1) == .rolledBack)
        #expect(try order(counter - 1, isRetired: false) == .later)
        #expect(try order(counter - 1, isRetired: true) == .rolledBack)
        #expect(try order(counter, digest: keyring.digest) == .same)
        #expect(try order(counter, digest: .some(nil)) == .same)
        #expect(try order(counter, digest: Keyring.new().digest) == .rolledBack)
        #expect(throws: VaultError.self) { try order(counter) }
    }

    @Test func `the printed code opens the data keys, also those that were made without it`() throws {
        let account = AccountID.random()
        let code = stretched()
        let password = stretched()
        let recovery = try RecoveryKeys.new(for: code, account: account)
        let keyring = Keyring.new().changed { $0.recovery = recovery }
        _ = try recovery.sealedKeyring(keyring, account: account)

        // Another device knows the account's keyring only.
        let elsewhere = try Keyring(sealed: keyring.sealed(under: password), openedBy: password)
        let rotated = elsewhere.changed { $0.dataKeys.append(.random()) }
        let sealed = try #require(rotated.recovery).sealedKeyring(rotated, account: account)
        let opened = try RecoveryKeys.open(sealed, with: code, account: account)
        #expect(opened.encoded() == rotated.encoded())

        #expect(throws: Keyring.Failure.notAuthentic) {
            try RecoveryKeys.open(sealed, with: stretched(), account: account)
        }
        #expect(throws: Keyring.Failure.notAuthentic) { try RecoveryKeys.open(sealed, with: code, account: .random()) }
        for index in sealed.indices {
            var changed = sealed
            changed[index] ^= 1
            #expect(throws: Keyring.Failure.self) { try RecoveryKeys.open(changed, with: code, account: account) }
        }
    }

    @Test func `what a code opens and is no pair of keys, or no keyring, is malformed and not another code's`() throws {
        let account = AccountID.random()
        let code = stretched()
        let recovery = try RecoveryKeys.new(for: code, account: account)
        let key = HKDF.deriveKey(from: code.unlockKey, info: SealingLabels.recoveryKey.utf8)
        let place = SealedBox.Place(.recovery, account: account, item: .none, collection: "")
        let short = try SealedBox.seal(SecureRandom.secureBytes(63), .first, at: place, with: #require(DataKey(key)))
        let damaged = RecoveryKeys(
            publicKey: recovery.publicKey, authenticationKey: recovery.authenticationKey, sealedPrivateKey: short)
        var many = Keyring.new()
        many.dataKeys = (0..<257).map { _ in .random() }
        for sealed in [
            try damaged.sealedKeyring(.new(), account: account), try recovery.sealedKeyring(many, account: account),
        ] {
            #expect(throws: Keyring.Failure.malformed) { try RecoveryKeys.open(sealed, with: code, account: account) }
        }
    }

    @Test func `a server that seals to the public key itself is not believed`() throws {
        let account = AccountID.random()
        let code = stretched()
        let recovery = try RecoveryKeys.new(for: code, account: account)
        // It knows the public key, say, but not the authentication key.
        let forged = RecoveryKeys(
            publicKey: recovery.publicKey, authenticationKey: SecureRandom.secureBytes(32),
            sealedPrivateKey: recovery.sealedPrivateKey)
        let sealed = try forged.sealedKeyring(.new(), account: account)
        #expect(throws: Keyring.Failure.notAuthentic) { try RecoveryKeys.open(sealed, with: code, account: account) }
    }
}
