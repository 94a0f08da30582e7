import Cryptography
import Postgres
import Testing

@testable import SalternServer

@Suite struct OneTimePasswordTests {
    /// The secret of the test vectors of both RFCs.
    private let passwords = OneTimePasswords(secret: SecureBytes(copying: Array("12345678901234567890".utf8)))

    /// RFC 4226 appendix D.
    @Test(
        arguments: [
            "755224", "287082", "359152", "969429", "338314", "254676", "287922", "162583", "399871", "520489",
        ].enumerated().map { (Int64($0), $1) })
    func `the codes of RFC 4226 are computed`(counter: Int64, code: String) {
        #expect(passwords.code(at: counter).text == code)
    }

    /// RFC 6238 appendix B, SHA-1; the last six of its eight digits.
    @Test(
        arguments: [
            (59, "287082"), (1_111_111_109, "081804"), (1_111_111_111, "050471"), (1_234_567_890, "005924"),
            (2_000_000_000, "279037"), (20_000_000_000, "353130"),
        ] as [(Int64, String)])
    func `the codes of RFC 6238 are computed`(seconds: Int64, code: String) {
        #expect(passwords.code(at: OneTimePasswords.step(at: Timestamp(unixSeconds: seconds))).text == code)
    }

    @Test func `a code counts in its own step and one to either side`() {
        let code = passwords.code(at: 1_000)
        for step in 995...1_005 as ClosedRange<Int64> {
            for second in [step * 30, step * 30 + 29] {
                let found = passwords.step(of: code, at: Timestamp(unixSeconds: second), after: 0)
                #expect(found == ((999...1_001).contains(step) ? 1_000 : nil), "\(step)")
            }
        }
    }

    @Test func `a code does not count when its step is not after the latest`() {
        let now = Timestamp(unixSeconds: 30_000)
        for (lastStep, expected) in [(998, 1_000), (999, 1_000), (1_000, nil), (1_001, nil)] as [(Int64, Int64?)] {
            #expect(passwords.step(of: passwords.code(at: 1_000), at: now, after: lastStep) == expected)
        }
        // The code of the step before is lost, the one of the step after counts.
        #expect(passwords.step(of: passwords.code(at: 999), at: now, after: 1_000) == nil)
        #expect(passwords.step(of: passwords.code(at: 1_001), at: now, after: 1_000) == 1_001)
    }

    @Test func `at the beginning of time there is a code too`() {
        let code = passwords.code(at: 1)
        #expect(passwords.step(of: code, at: Timestamp(unixSeconds: 0), after: 0) == 1)
        #expect(passwords.step(of: code, at: Timestamp(unixSeconds: -5), after: 0) == 1)
    }

    @Test func `the URI is what authenticator apps read`() throws {
        #expect(
            passwords.uri(issuer: "Notes", userid: try Userid("ada@example.org"))
                == "otpauth://totp/Notes:ada%40example.org?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"
                + "&issuer=Notes&algorithm=SHA1&digits=6&period=30")
        #expect(
            passwords.uri(issuer: "Ä & B: C/D", userid: try Userid("zoë+1?#"))
                == "otpauth://totp/%C3%84%20%26%20B%20C%2FD:zo%C3%AB%2B1%3F%23"
                + "?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=%C3%84%20%26%20B%20C%2FD"
                + "&algorithm=SHA1&digits=6&period=30")
    }

    @Test(arguments: [
        ("My: App", "acct:ada:1", "My%20App", "acct_ada_1"), (":My:\u{338}App:", ":a", "My%CC%B8App", "_a"),
        (":", "ada", "Saltern", "ada"),
    ])
    func `issuer and account have no colon`(issuer: String, userid: String, name: String, account: String) throws {
        let uri = passwords.uri(issuer: issuer, userid: try Userid(userid))
        #expect(uri.hasPrefix("otpauth://totp/\(name):\(account)?secret="), "\(uri)")
        #expect(uri.contains("&issuer=\(name)&"), "\(uri)")
    }

    @Test func `secrets are random and are not printed`() {
        let first = OneTimePasswords.random()
        #expect(first.secret.count == 20)
        #expect(first.secret != OneTimePasswords.random().secret)
        #expect(!String(reflecting: first).contains(first.secretText))
        #expect(!String(reflecting: passwords.code(at: 1)).contains("287082"))
    }
}
