import Foundation
import SalternTesting

@testable import SalternClient

/// One device of a person: a folder, and a way to the server that can be disturbed.
struct Device {
    let name: String
    let folder: TemporaryDirectory
    var settings: VaultSettings
    let link: LossyTransport
    private(set) var life = StoreLife()

    init(_ name: String, _ server: LiveServer, merge: MergeRule? = nil) throws {
        self.name = name
        folder = try TemporaryDirectory(.memory)
        link = LossyTransport(try CurlTransport(server.address()))
        settings = .forTests(folder: folder.path, link, name: name, merge: merge)
    }

    /// From now on it is in another process, whose store can fail by ``life``. Whoever calls this has let go of the vault.
    mutating func beginLife() throws {
        life = StoreLife()
        guard StoreCalls.concern(life, folder: folder.path) else { throw StoreError.unusable }
        link.belong(to: life)
    }

    func endLives() { StoreCalls.concern(nil, folder: folder.path) }
}

extension VaultSettings {
    /// With cheap key derivation and short waits.
    static func forTests(
        folder: String, _ transport: any HTTPTransport, name: String, merge: MergeRule? = nil
    ) -> VaultSettings {
        var settings = VaultSettings(
            folder: URL(filePath: folder), transport: transport,
            stretching: .forTests, deviceName: name,
            merge: merge)
        settings.signOutPatience = .seconds(180)
        settings.retries = Retries(attempts: 2, waits: .milliseconds(1)...(.milliseconds(5)))
        return settings
    }
}

extension StretchingRule {
    /// One iteration instead of thousands. Each number of iterations still has a key of its own.
    static let forTests = {
        var rule = StretchingRule(saltPrefix: LiveServer.saltPrefix, minimumIterations: 10_000)
        rule.derivation = { await Self.derive($0, "\($1) \($2)", 1) }
        return rule
    }()
}

/// A note of a person.
struct Note: Codable, Sendable, Equatable {
    var text: String
}
