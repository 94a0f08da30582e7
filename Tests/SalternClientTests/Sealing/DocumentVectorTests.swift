import Cryptography
import Foundation
import Testing

@testable import SalternClient

/// docs/vectors.json: every step of a client with its inputs. What has no randomness the kit makes again, byte for byte;
/// what has, it opens. Tests/Integration/vectors.sh does the same with Python.
///
/// With `SALTERN_WRITE_VECTORS=1` the kit writes the file anew.
struct DocumentVectorTests {
    private static let file = URL(filePath: #filePath)
        .deletingLastPathComponent().appending(path: "../../../docs/vectors.json").standardized

    private static let account = "11111111-2222-3333-4444-555555555555"
    private static let item = "aaaaaaaa-bbbb-4ccc-8ddd-eeeeeeeeeeee"
    private static let code = "ABCDE-FGH12-34567-89JKM-NPQR"

    private static func bytes(_ range: Range<UInt8>) -> [UInt8] { Array(range) }

    private static func key(_ range: Range<UInt8>) throws -> DataKey {
        try #require(DataKey(SecureBytes(copying: bytes(range))))
    }

    /// The recovery code whose last character fits the others.
    private static func recoveryCode() throws -> RecoveryCode {
        let codes = "0123456789ABCDEFGHJKMNPQRSTVWXYZ".compactMap { RecoveryCode(code + String($0)) }
        return try #require(codes.first)
    }

    /// The keyring of the vectors: two data keys, and the recovery if there is one.
    private static func keyring(_ recovery: RecoveryKeys?) throws -> Keyring {
        var writer = SecretWriter()
        writer.write([1])
        writer.write(UInt64(7).bigEndianBytes)
        writer.write(bytes(64..<96))
        writer.write(UInt16(2).bigEndianBytes)
        writer.write(bytes(0..<32))
        writer.write(bytes(32..<64))
        writer.write([0])
        var keyring = try Keyring(encoded: writer.bytes)
        keyring.recovery = recovery
        return keyring
    }

    private static let rule = StretchingRule(saltPrefix: "com.example.MyGreatSite:", minimumIterations: 10_000)

    /// What follows from constants alone.
    private static func fixed() async throws -> [String: [String: String]] {
        let account = try #require(AccountID(account))
        let item = try #require(ItemID(item))
        let stretched = try await rule.stretch(Password("S3kr3t!"), userid: "robnapier@gmail.com", iterations: 10_000)
        let printed = try recoveryCode()
        let code = await printed.stretched(by: rule)
        let dataKey = try key(0..<32)
        let place = SealedBox.Place(.body, account: account, item: item, collection: "notes")
        let body = try SealedBox.seal(
            Array("Buy salt.".utf8), .first, at: place, with: dataKey, nonce: bytes(0..<12))
        let ring = try keyring(nil)
        let mark = UseridMark(of: "robnapier@gmail.com")
        let keyringKey = HKDF.deriveKey(from: stretched.unlockKey, info: SealingLabels.keyringKey.utf8)
        let sealedRing = try SealedBox.seal(
            ring.encoded(), SealedBox.Edit(number: 7, previous: mark.bytes),
            at: SealedBox.Place(.keyring, account: .none, item: .none, collection: ""),
            with: try #require(DataKey(keyringKey)), nonce: bytes(12..<24))
        let salt = bytes(100..<116)
        let shareKey = try PBKDF2.deriveKey(
            from: "0123456789abcdefABCDEF".utf8, salt: salt, unsafeUncheckedIterations: 10_000)
        return [
            "stretch": [
                "password": "S3kr3t!", "salt": "com.example.MyGreatSite:robnapier@gmail.com", "iterations": "10000",
                "passwordKey": Hex.encode(stretched.passwordKey.bytes),
                "unlockKey": Hex.encode(stretched.unlockKey),
            ],
            "item": [
                "dataKey": Hex.encode(bytes(0..<32)), "keyId": Hex.encode(Array(body[1..<5])), "account": Self.account,
                "item": Self.item, "collection": "notes", "part": "2", "edit": "1", "content": "Buy salt.",
                "additional": Hex.encode(SealedBox.additionalData(place)), "sealed": Hex.encode(body),
            ],
            "gcm": try gcm(),
            "keyring": [
                "key": Hex.encode(keyringKey), "plaintext": Hex.encode(ring.encoded()), "counter": "7",
                "userid": "robnapier@gmail.com", "useridMark": Hex.encode(mark.bytes),
                "sealed": Hex.encode(sealedRing),
            ],
            "recoveryCode": [
                "code": printed.text, "salt": "com.example.MyGreatSite:recovery", "iterations": "100000",
                "recoveryKey": Hex.encode(code.passwordKey.bytes),
                "unlockKey": Hex.encode(code.unlockKey),
                "codeKey": Hex.encode(HKDF.deriveKey(from: code.unlockKey, info: SealingLabels.recoveryKey.utf8)),
            ],
            "share": [
                "passphrase": "0123456789abcdefABCDEF", "salt": Hex.encode(salt), "iterations": "10000",
                "key": Hex.encode(shareKey), "content": "{\"user\":\"guests\"}",
            ],
            "rncryptor": try rncryptor(),
            "passkey": try passkey(account),
        ]
    }

    // MARK: Passkeys

    private static let credentialID = bytes(200..<232)
    private static var output: SecureBytes { SecureBytes(copying: bytes(150..<182)) }

    private static func passkey(_ account: AccountID) throws -> [String: String] {
        let salt = SHA256.hash(Array("WebAuthn PRF".utf8) + [0] + PasskeyKeys.input).bytes
        return [
            "input": String(decoding: PasskeyKeys.input, as: UTF8.self), "salt": Hex.encode(salt),
            "output": Hex.encode(output), "account": Self.account, "credentialId": Hex.encode(credentialID),
            "key": Hex.encode(
                HKDF.deriveKey(
                    from: output, info: Array(SealingLabels.passkeyKey.utf8) + account.bytes + credentialID)),
        ]
    }

    /// Opens keyring and box with the output.
    private static func checkPasskey(_ random: [String: String], _ account: AccountID) throws {
        func value(_ name: String) throws -> [UInt8] { try #require(random[name].flatMap { Hex.decode($0) }) }
        let ring = try Keyring(encoded: SecureBytes(copying: value("passkeyKeyring")))
        #expect(ring.passkeys.map(\.id) == [credentialID])
        let unlockKey = try PasskeyKeys.open(
            value("passkeyBox"), value("passkeySealedPrivateKey"), of: credentialID, output: output, account: account
        ).unlockKey
        #expect(unlockKey == SecureBytes(copying: bytes(0..<32)))
    }

    /// Chapter 4: AES-256-GCM by itself, with the text of the item's id authenticated along.
    private static func gcm() throws -> [String: String] {
        let sealed = try AESGCM.seal(
            Array("Buy salt.".utf8), using: SecureBytes(copying: bytes(0..<32)), uniqueNonce: bytes(0..<12),
            authenticating: Array(item.utf8))
        return [
            "key": Hex.encode(bytes(0..<32)), "item": item, "content": "Buy salt.",
            "additional": Hex.encode(Array(item.utf8)), "sealed": Hex.encode(sealed),
        ]
    }

    // MARK: RNCryptor v3

    private static let rncryptorText = "Käse, Salz"

    /// The two modes of RNCryptor v3, with numbers that are not random. The kit itself only opens this format.
    private static func rncryptor() throws -> [String: String] {
        let text = Array(rncryptorText.utf8)
        let vector = bytes(32..<48)
        func message(_ head: [UInt8], _ encryption: SecureBytes, _ authentication: SecureBytes) throws -> [UInt8] {
            let body = head + vector + (try AESCBC.encrypt(text, using: encryption, vector: vector))
            return body + HMACSHA256.authenticationCode(for: body, using: authentication).bytes
        }
        let (encryption, authentication) = (
            SecureBytes(copying: bytes(0..<32)), SecureBytes(copying: bytes(64..<96))
        )
        let salts = bytes(100..<116)
        func key(_ salt: ArraySlice<UInt8>) throws -> SecureBytes {
            try PBKDF2.deriveKeyWithSHA1(from: Array("S3kr3t!".utf8), salt: salt, iterations: 10_000)
        }
        return [
            "content": rncryptorText, "password": "S3kr3t!", "encryptionKey": Hex.encode(bytes(0..<32)),
            "authenticationKey": Hex.encode(bytes(64..<96)),
            "keyMode": Hex.encode(try message([3, 0], encryption, authentication)),
            "passwordMode": Hex.encode(try message([3, 1] + salts, key(salts[..<8]), key(salts[8...]))),
        ]
    }

    /// Opens both modes. Python's `rncryptor` makes the same bytes.
    private static func checkRNCryptor(_ messages: [String: String]) throws {
        let (encryption, authentication) = (
            SecureBytes(copying: bytes(0..<32)), SecureBytes(copying: bytes(64..<96))
        )
        let keyed = try #require(messages["keyMode"].flatMap { Hex.decode($0) })
        let passworded = try #require(messages["passwordMode"].flatMap { Hex.decode($0) })
        let text = SecureBytes(copying: rncryptorText.utf8)
        #expect(
            try RNCryptorMessage.open(keyed, encryptionKey: encryption, authenticationKey: authentication) == text)
        #expect(try RNCryptorMessage.open(passworded, password: Array("S3kr3t!".utf8)) == text)
    }

    /// Opens what was made with random numbers.
    private static func check(_ random: [String: String]) async throws {
        let account = try #require(AccountID(account))
        let code = await (try recoveryCode()).stretched(by: rule)
        let sealed = try #require(random["recoveryKeyring"].flatMap { Hex.decode($0) })
        let opened = try RecoveryKeys.open(sealed, with: code, account: account)
        #expect(opened.counter == 7)
        #expect(
            opened.dataKeys.map { Hex.encode($0.bytes) } == [Hex.encode(bytes(0..<32)), Hex.encode(bytes(32..<64))])
        try checkPasskey(random, account)
        let share = try #require(random["share"].flatMap { Hex.decode($0) })
        let key = try PBKDF2.deriveKey(
            from: "0123456789abcdefABCDEF".utf8, salt: bytes(100..<116), unsafeUncheckedIterations: 10_000)
        let text = try AESGCM.open(share, using: key, nonceLength: .twelve)
        #expect(text.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } == "{\"user\":\"guests\"}")
    }

    private static func write(_ fixed: [String: [String: String]]) async throws {
        let account = try #require(AccountID(account))
        let code = await (try recoveryCode()).stretched(by: rule)
        let recovery = try RecoveryKeys.new(for: code, account: account)
        let key = try PBKDF2.deriveKey(
            from: "0123456789abcdefABCDEF".utf8, salt: bytes(100..<116), unsafeUncheckedIterations: 10_000)
        let (keys, sealed) = try PasskeyKeys.new(for: credentialID, output: output, account: account)
        let box = try keys.box(of: SecureBytes(copying: bytes(0..<32)), counter: 7, account: account)
        var ring = try keyring(nil)
        ring.passkeys = [keys]
        // VaultVectorTests writes the sections about shared vaults.
        var document = try JSONDecoder().decode([String: [String: String]].self, from: Data(contentsOf: file))
            .filter { $0.key.hasPrefix("vault") }
        document.merge(fixed) { $1 }
        document["random"] = [
            "recoveryKeyring": Hex.encode(try recovery.sealedKeyring(try keyring(recovery), account: account)),
            "passkeyKeyring": Hex.encode(ring.encoded()), "passkeySealedPrivateKey": Hex.encode(sealed),
            "passkeyBox": Hex.encode(box),
            "share": Hex.encode(try AESGCM.seal(Array("{\"user\":\"guests\"}".utf8), using: key)),
        ]
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try (try encoder.encode(document) + Data("\n".utf8)).write(to: file)
    }

    @Test func `the kit makes and opens the vectors of the documents`() async throws {
        let fixed = try await Self.fixed()
        if ProcessInfo.processInfo.environment["SALTERN_WRITE_VECTORS"] != nil { try await Self.write(fixed) }
        var document = try JSONDecoder().decode([String: [String: String]].self, from: Data(contentsOf: Self.file))
        try await Self.check(try #require(document.removeValue(forKey: "random")))
        try Self.checkRNCryptor(try #require(document["rncryptor"]))
        #expect(document.filter { !$0.key.hasPrefix("vault") } == fixed)
    }
}
