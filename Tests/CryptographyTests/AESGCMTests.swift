import Cryptography
import Testing

struct AESGCMTests {
    struct Vector: CustomTestStringConvertible {
        let name: String
        let key: String
        let nonce: String
        let plaintext: String
        let authenticatedData: String
        let sealed: String
        var testDescription: String { name }
    }

    private static let counting = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
    private static let fox =
        "54686520717569636b2062726f776e20666f78206a756d7073206f76657220746865206c617a7920646f67"

    static let vectors = [
        // The GCM specification (McGrew and Viega), appendix B, test cases 13 to 16.
        Vector(
            name: "test case 13", key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24),
            plaintext: "", authenticatedData: "", sealed: "530f8afbc74536b9a963b4f1c4cb738b"),
        Vector(
            name: "test case 14", key: String(repeating: "0", count: 64), nonce: String(repeating: "0", count: 24),
            plaintext: String(repeating: "0", count: 32), authenticatedData: "",
            sealed: "cea7403d4d606b6e074ec5d3baf39d18d0d1c8a799996bf0265b98b5d48ab919"),
        Vector(
            name: "test case 16", key: "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
            nonce: "cafebabefacedbaddecaf888",
            plaintext: "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
                + "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
            authenticatedData: "feedfacedeadbeeffeedfacedeadbeefabaddad2",
            sealed: "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
                + "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662" + "76fc6ece0f4e1768cddf8853bb2d551b"),
        // Computed with Python's cryptography 48.
        Vector(
            name: "12-byte nonce", key: counting, nonce: "6465666768696a6b6c6d6e6f", plaintext: fox,
            authenticatedData: "73616c7465726e",
            sealed: "1c73bb46089c3ffd55423d9ab51204dd24ad7e2ae1199e02d4f1c33e9ed1853cfc8c60ac2d68e224999c1f"
                + "90a7e7d92705b7dc9067942cd31206ef"),
        Vector(
            name: "16-byte nonce", key: counting, nonce: "6465666768696a6b6c6d6e6f70717273", plaintext: fox,
            authenticatedData: "73616c7465726e",
            sealed: "8cdb267195614ebbd9d9cffb28a082453c1e20e0f69a8d7bb6a07b18fc8527bc13a4aea001b19ae1656028"
                + "b39b9e7eded393eb86cbbf5a371aa622"),
        Vector(
            name: "16-byte nonce, nothing to hide", key: counting, nonce: "6465666768696a6b6c6d6e6f70717273",
            plaintext: "", authenticatedData: "", sealed: "8cdb05afd6965abaee9c833e43d04b1c"),
    ]

    private let key = SecureRandom.secureBytes(32)

    @Test(arguments: vectors)
    func `published vectors seal and open`(_ vector: Vector) throws {
        let key = SecureBytes(copying: try bytes(vector.key))
        let sealed = try AESGCM.seal(
            bytes(vector.plaintext), using: key, uniqueNonce: bytes(vector.nonce),
            authenticating: bytes(vector.authenticatedData))
        #expect(Hex.encode(sealed) == vector.nonce + vector.sealed)

        let nonceLength = try #require(AESGCM.NonceLength(rawValue: vector.nonce.utf8.count / 2))
        let opened = try AESGCM.open(
            sealed, using: key, nonceLength: nonceLength, authenticating: bytes(vector.authenticatedData))
        #expect(opened.withUnsafeBytes { Hex.encode($0) } == vector.plaintext)
    }

    @Test(arguments: [AESGCM.NonceLength.twelve, .sixteen])
    func `every seal has a fresh nonce`(_ length: AESGCM.NonceLength) throws {
        let nonces = try (0..<100).map { _ in
            Array(try AESGCM.seal([1], using: key, nonceLength: length).prefix(length.rawValue))
        }
        #expect(Set(nonces).count == 100)
    }

    @Test func `a change of any byte is noticed`() throws {
        let sealed = try AESGCM.seal(Array("plaintext".utf8), using: key, authenticating: [1, 2])
        for position in sealed.indices {
            var changed = sealed
            changed[position] ^= 1
            #expect(throws: AESGCM.Failure.authenticationFailed) {
                try AESGCM.open(changed, using: key, authenticating: [1, 2])
            }
        }
    }

    @Test func `other authenticated data and another key are noticed`() throws {
        let sealed = try AESGCM.seal([7], using: key, authenticating: [1, 2])
        #expect(throws: AESGCM.Failure.authenticationFailed) {
            try AESGCM.open(sealed, using: key, authenticating: [1, 3])
        }
        #expect(throws: AESGCM.Failure.authenticationFailed) { try AESGCM.open(sealed, using: key) }
        #expect(throws: AESGCM.Failure.authenticationFailed) {
            try AESGCM.open(sealed, using: SecureRandom.secureBytes(32), authenticating: [1, 2])
        }
    }

    @Test(arguments: [AESGCM.NonceLength.twelve, .sixteen])
    func `bytes that are too short are refused`(_ length: AESGCM.NonceLength) {
        for count in 0..<(length.rawValue + AESGCM.tagByteCount) {
            #expect(throws: AESGCM.Failure.wrongLength) {
                try AESGCM.open([UInt8](repeating: 0, count: count), using: key, nonceLength: length)
            }
        }
    }

    @Test(arguments: [0, 16, 31, 33])
    func `a key of another length is refused`(_ count: Int) {
        #expect(throws: AESGCM.Failure.wrongKeyLength) {
            try AESGCM.seal([1], using: SecureRandom.secureBytes(count))
        }
    }

    @Test(arguments: [0, 11, 13, 15, 17])
    func `a nonce of another length is refused`(_ count: Int) {
        #expect(throws: AESGCM.Failure.wrongNonceLength) {
            try AESGCM.seal([1], using: key, uniqueNonce: [UInt8](repeating: 0, count: count))
        }
    }

    private func bytes(_ hexadecimal: String) throws -> [UInt8] {
        try #require(Hex.decode(hexadecimal))
    }
}
