import Cryptography
import Testing

struct PBKDF2Tests {
    struct Vector: CustomTestStringConvertible {
        let password: String
        let salt: String
        let iterations: Int
        let key: String
        var testDescription: String { "\(password), \(iterations) iterations" }
    }

    static let vectors = [
        // RFC 7914 section 11.
        Vector(
            password: "passwd", salt: "salt", iterations: 1,
            key: "55ac046e56e3089fec1691c22544b605f94185216dde0465e68b9d57c20dacbc"
                + "49ca9cccf179b645991664b39d77ef317c71b845b1e30bd509112041d3a19783"),
        Vector(
            password: "Password", salt: "NaCl", iterations: 80_000,
            key: "4ddcd8f60b98be21830cee5ef22701f9641a4418d04c0414aeff08876b34ab56"
                + "a1d425a1225833549adb841b51c9b3176a272bdebba1d078478f62b397f33c8d"),
        // The RFC 6070 input with SHA-256.
        Vector(
            password: "password", salt: "salt", iterations: 4096,
            key: "c5e478d59288c841aa530db6845c4c8d962893a001ce4e11a4963873aa98134a"),
        // The vectors that clients of this server are tested with.
        Vector(
            password: "S3kr3t!", salt: "com.example.MyGreatSite:robnapier@gmail.com", iterations: 10_000,
            key: "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded"),
        Vector(
            password: "S3kr3t!", salt: "com.example.MyGreatSite:robnapier@gmail.com", iterations: 600_000,
            key: "de9e20b2f0243e88b94ba524b68c65b284fd1820259867ffe62d7c2429a17853"),
    ]

    @Test(arguments: vectors)
    func `known inputs give known keys`(_ vector: Vector) throws {
        let key = try PBKDF2.deriveKey(
            from: vector.password.utf8, salt: vector.salt.utf8, unsafeUncheckedIterations: vector.iterations,
            byteCount: vector.key.utf8.count / 2)
        #expect(key.withUnsafeBytes { Hex.encode($0) } == vector.key)
    }

    @Test func `the verifier is the digest of the key`() throws {
        let key = try PBKDF2.deriveKey(
            from: "S3kr3t!".utf8, salt: "com.example.MyGreatSite:robnapier@gmail.com".utf8)
        #expect(Hex.encode(SHA256.hash(key)) == "7ddb5ccada4b07c5511497f2813c93adb026aa58c58d98800ce2fe29f1022c8c")
    }

    @Test func `the safe entry point refuses too few iterations`() {
        #expect(throws: PBKDF2.Failure.tooFewIterations(minimum: 600_000)) {
            try PBKDF2.deriveKey(from: "password".utf8, salt: "salt".utf8, iterations: 599_999)
        }
    }

    @Test(arguments: [0, -1])
    func `no entry point takes less than one iteration`(_ iterations: Int) {
        #expect(throws: PBKDF2.Failure.tooFewIterations(minimum: 1)) {
            try PBKDF2.deriveKey(from: "password".utf8, salt: "salt".utf8, unsafeUncheckedIterations: iterations)
        }
    }

    @Test func `more iterations than OpenSSL can count are refused`() {
        #expect(throws: PBKDF2.Failure.tooManyIterations(maximum: Int(Int32.max))) {
            try PBKDF2.deriveKey(from: "password".utf8, salt: "salt".utf8, iterations: Int(Int32.max) + 1)
        }
    }

    @Test(arguments: [0, -1, Int(Int32.max) + 1])
    func `a key length outside the bounds is refused`(_ byteCount: Int) {
        #expect(throws: PBKDF2.Failure.keyLengthOutOfRange) {
            try PBKDF2.deriveKey(from: "password".utf8, salt: "salt".utf8, byteCount: byteCount)
        }
    }

    @Test func `an empty password and an empty salt are inputs like any other`() throws {
        let key = try PBKDF2.deriveKey(
            from: [UInt8](), salt: [UInt8](), unsafeUncheckedIterations: 1, byteCount: 32)
        #expect(
            key.withUnsafeBytes { Hex.encode($0) }
                == "f7ce0b653d2d72a4108cf5abe912ffdd777616dbbb27a70e8204f3ae2d0f6fad")
    }
}
