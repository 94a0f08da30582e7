import Cryptography
import HTTPCore
import Postgres
import SalternTesting

@testable import SalternServer

extension TestApplication {
    /// What checks secrets as the application does, beside it.
    var guarding: Attempts {
        Attempts(
            subjects: AttemptSubjects(secret: .random()), database: postgres, counterQueue: CounterQueue(),
            checks: ActiveSecretChecks(), devices: DeviceTokens(keys: configuration.masterKey.subkeys("known-device")),
            previousKeys: PreviousKeys(keys: configuration.masterKey.subkeys("previous-key")), clock: clock)
    }

    /// How many failures of a kind the owner reads of, those that go on and those that are over.
    func failures(of account: TestAccount, _ kind: String) async throws -> Int {
        let reply = try await account.client.get("/v1/account/events?limit=500")
        return (reply.array("events") ?? []).indices
            .filter { reply.string("events.\($0).kind") == kind }
            .reduce(0) { $0 + (reply.integer("events.\($1).count") ?? 1) }
    }
}

extension TestClient {
    /// The slot that the client's session counts for.
    var slot: UInt8? {
        guard let token, let bytes = try? Base64URL.decode(Array(token.utf8.dropFirst(4))) else { return nil }
        return SHA256.hash(Array(bytes[UUID.byteCount...])).bytes[0] % KnownDevice.slotCount
    }
}

extension DeviceTokens {
    /// The device that a token's text is of.
    func device(_ text: String) -> KnownDevice? {
        var text = text
        return text.withUTF8(DeviceToken.init).flatMap(device)
    }

    /// The token's text.
    func text(_ device: KnownDevice) -> String? { token(device).map { "sld_" + Base64URL.encodeToString($0.bytes) } }
}
