import Cryptography
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

@Suite struct PairwiseSubjectTests {
    private let billing = AudienceName("billing")
    private let push = AudienceName("push")

    @Test func `a name is HMAC-SHA256 over kind, length, audience and identifier`() throws {
        let billing = try #require(billing)
        let masterKey = MasterKey.random()
        let secret = SecureRandom.secureBytes(32)
        let key = try PairwiseKey(sealed: masterKey.seal(secret, for: .pairwiseKey), masterKey: masterKey)
        let account = AccountID.random()
        let message = [1, 7] + Array("billing".utf8) + account.uuid.bytes
        let code = HMACSHA256.authenticationCode(for: message, using: secret)
        let subject = PairwiseSubject(of: account, for: billing, key: key)
        #expect(subject.text == Base64URL.encodeToString(code.bytes))
        #expect(subject.text.utf8.count == 43)
    }

    @Test func `audiences, kinds and keys have different names for the same identifier`() throws {
        let (billing, push) = (try #require(billing), try #require(push))
        let key = PairwiseKey.random()
        let account = AccountID.random()
        let names = [
            PairwiseSubject(of: account, for: billing, key: key), PairwiseSubject(of: account, for: push, key: key),
            PairwiseSubject(of: SessionID(account.uuid), for: billing, key: key),
            PairwiseSubject(of: account, for: billing, key: .random()),
            PairwiseSubject(of: AccountID.random(), for: billing, key: key),
        ]
        #expect(Set(names).count == names.count)
        #expect(PairwiseSubject(of: account, for: billing, key: key) == names[0])
    }

    @Test func `the sealed key opens for its place and master key only`() throws {
        let masterKey = MasterKey.random()
        let key = PairwiseKey.random()
        let sealed = try key.sealed(by: masterKey)
        let again = try PairwiseKey(sealed: sealed, masterKey: masterKey)
        let billing = try #require(billing)
        #expect(again.code(.account, for: billing, []) == key.code(.account, for: billing, []))
        #expect(throws: MasterKeyError.self) { try PairwiseKey(sealed: sealed, masterKey: .random()) }
        let moved = try masterKey.seal(
            SecureRandom.secureBytes(32), for: .oneTimePasswords(of: AccountID.random()))
        #expect(throws: MasterKeyError.notAuthentic) { try PairwiseKey(sealed: moved, masterKey: masterKey) }
        let short = try masterKey.seal(SecureRandom.secureBytes(31), for: .pairwiseKey)
        #expect(throws: MasterKeyError.notAuthentic) { try PairwiseKey(sealed: short, masterKey: masterKey) }
    }

    @Test func `every node has the key that the first one drew, also after a rotation of the master key`() async throws
    {
        try await TestApplication.with { app in
            let billing = try #require(billing)
            let name = try #require(try await self.name(app, app.configuration, billing))
            var configuration = app.configuration
            configuration.masterKey = try configuration.masterKey.rotated()
            #expect(try await self.name(app, configuration, billing) == name)
            let key = configuration.masterKey
            let report = try await app.run { try await SealedSecrets(database: app.postgres).reseal(with: key) }
            #expect(report.resealed == 1)
            configuration.masterKey = key.removing(Set(key.ids.dropFirst()))
            #expect(try await self.name(app, configuration, billing) == name)
            configuration.masterKey = .random()
            #expect(try await self.name(app, configuration, billing) == nil)
        }
    }

    private func name(
        _ app: TestApplication, _ configuration: ServiceConfiguration, _ audience: AudienceName
    ) async throws -> PairwiseSubject? {
        let installation = try await app.run {
            try await Installation.load(configuration: configuration, database: app.postgres, clock: app.clock)
        }
        return installation.pairwiseKey.map { PairwiseSubject(of: AccountID(UUID.zero), for: audience, key: $0) }
    }

    @Test(arguments: [
        ("billing", false, false), ("push=account", true, false), ("a=userid", false, true),
        ("support-2.eu=account+userid", true, true), ("s=userid+account", true, true),
    ])
    func `an audience is a name with options`(_ text: String, _ account: Bool, _ userid: Bool) throws {
        let audience = try #require(Audience(text))
        #expect(audience.seesAccountID == account && audience.seesUserid == userid)
        #expect(text.hasPrefix(audience.name.description))
    }

    @Test(arguments: [
        "", "Billing", "-a", "a b", "a=", "a=b", "a=account+", "a=account+account", "a=account=userid", "a,b",
        String(repeating: "a", count: 65),
    ])
    func `anything else is no audience`(_ text: String) { #expect(Audience(text) == nil) }
}
