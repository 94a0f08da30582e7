import Cryptography
import Testing

@testable import SalternClient

struct StretchingRuleTests {
    private let rule = StretchingRule(saltPrefix: "com.example.MyGreatSite:", minimumIterations: 10_000)
    private let userid = "robnapier@gmail.com"

    private func parameters(
        algorithm: String = "PBKDF2-HMAC-SHA256", prefix: String = "com.example.MyGreatSite:",
        salt: String = "com.example.MyGreatSite:robnapier@gmail.com", iterations: Int = 10_000, keyLength: Int = 32
    ) -> KDFParameters {
        KDFParameters(
            algorithm: algorithm, saltPrefix: prefix, salt: salt, iterations: iterations, keyLength: keyLength)
    }

    @Test func `stretches to the vector of the contract`() async throws {
        let stretched = try await rule.stretch(Password("S3kr3t!"), userid: userid, iterations: 10_000)
        #expect(
            Hex.encode(stretched.passwordKey.bytes)
                == "f68a328661383beb161e7fc403de2d1507ee84d670d5064d508991a240853ded")
        #expect(stretched.unlockKey != stretched.passwordKey.bytes)
    }

    @Test func `a password is the same bytes however it is composed`() {
        #expect(Password("caf\u{e9}").bytes == Password("cafe\u{301}").bytes)
    }

    @Test func `what a hostile server asks for is refused`() throws {
        try rule.check(parameters(), userid: userid)
        let refused: [(KDFParameters, StretchingRule.Refusal)] = [
            (parameters(algorithm: "MD5"), .algorithm), (parameters(prefix: "com.evil:"), .saltPrefix),
            (parameters(salt: "com.example.MyGreatSite:eve"), .salt),
            (parameters(iterations: 9_999), .iterations(minimum: 10_000)),
            (parameters(iterations: 10_000_001), .tooManyIterations(maximum: 10_000_000)),
            (parameters(keyLength: 16), .keyLength),
        ]
        for (parameters, refusal) in refused {
            #expect(throws: refusal) { try rule.check(parameters, userid: userid) }
        }
    }

    @Test func `the default floor is that of a new app`() {
        #expect(StretchingRule(saltPrefix: "").minimumIterations == 600_000)
    }
}
