import Foundation
import Postgres
import SalternServer
import SalternTesting
import Testing
import TransportSecurity

@testable import saltern

/// Settings of identity tokens and origins, and the file of signing keys.
@Suite struct TokenSettingsTests {
    private func tokens(_ variables: [String: String]) -> (policy: TokenPolicy, problems: [String]) {
        var settings = Settings(variables)
        let policy = settings.tokens().policy
        return (policy, settings.problems)
    }

    @Test func `an issuer, a file and audiences make a policy`() throws {
        let directory = try TemporaryDirectory()
        let file = SigningKeyFile(path: directory.path + "/signing-keys")
        let keys = try file.create(at: Timestamp(unixSeconds: 1_800_000_000))
        var variables = [
            "SALTERN_TOKEN_ISSUER": "https://sync.example.com", "SALTERN_SIGNING_KEY_FILE": file.path,
            "SALTERN_TOKEN_AUDIENCES": "billing, support=account+userid", "SALTERN_TOKEN_LIFETIME": "10m",
        ]
        let (policy, problems) = tokens(variables)
        #expect(problems.isEmpty)
        #expect(policy.issuer?.description == "https://sync.example.com")
        #expect(policy.keys?.keys.map(\.id) == keys.keys.map(\.id))
        #expect(policy.audiences.map(\.name.description) == ["billing", "support"])
        #expect(policy.audiences.map(\.seesUserid) == [false, true])
        #expect(policy.lifetime == .seconds(600))
        variables["SALTERN_TOKEN_AUDIENCES"] = "billing,billing=userid"
        #expect(tokens(variables).problems == ["SALTERN_TOKEN_AUDIENCES has an audience twice"])
        variables["SALTERN_TOKEN_ISSUER"] = nil
        variables["SALTERN_TOKEN_AUDIENCES"] = nil
        #expect(tokens(variables).problems == ["SALTERN_SIGNING_KEY_FILE needs SALTERN_TOKEN_ISSUER"])
        #expect(tokens(["SALTERN_TOKEN_ISSUER": "https://a.example"]).problems.count == 2)
        #expect(tokens(["SALTERN_TOKEN_AUDIENCES": "billing"]).problems.isEmpty)
    }

    @Test func `authorities of receivers are certificates`() throws {
        let directory = try TemporaryDirectory()
        _ = try CertificateDirectory(path: directory.path + "/tls").create(hosts: [.name("localhost")])
        let pem = try String(contentsOfFile: directory.path + "/tls/certificate.pem", encoding: .utf8)
            .trimmingCharacters(in: .newlines)
        func problems(_ text: String) -> [String] {
            var settings = Settings(["SALTERN_DESTINATION_CA": text])
            #expect((settings.destinationAuthorities() == nil) == !settings.problems.isEmpty)
            return settings.problems
        }
        #expect(problems(pem).isEmpty)
        #expect(problems(pem + "\n" + pem).isEmpty)
        for text in [
            "x", "-----BEGIN CERTIFICATE-----", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
            pem + "\n-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", String(pem.dropLast(40)),
        ] {
            #expect(
                problems(text).first?.hasPrefix("SALTERN_DESTINATION_CA must be none, or certificates in PEM") == true)
        }
    }

    @Test func `two rotations at a time are one, and a file is never overwritten`() throws {
        let directory = try TemporaryDirectory()
        let file = SigningKeyFile(path: directory.path + "/signing-keys")
        let now = Timestamp(unixSeconds: 1_800_000_000)
        _ = try file.create(at: now)
        #expect(throws: (any Error).self) { try file.create(at: now) }
        let rotated = try file.change { keys throws(SigningKeyError) in try keys.rotated(at: now) }
        #expect(throws: (any Error).self) {
            try file.change { keys throws(SigningKeyError) in try keys.rotated(at: now) }
        }
        #expect(try file.read().keys.map(\.id) == rotated.keys.map(\.id))
        #expect(rotated.keys.count == 2)
    }
}
