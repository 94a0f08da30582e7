import CommandLineKit
import SalternClient

/// The results of a sync for one shared vault, for the user.
struct VaultFindings: Encodable {
    private let shared: SharedVault
    private let findings: Findings

    private enum CodingKeys: CodingKey {
        case id, name, fetched, sent, changed, problems
    }

    /// The notices of all shared vaults, before a sync.
    typealias Known = [SharedVaultID: [Notice]]

    static func known(in vault: Vault) async throws -> Known {
        var known: Known = [:]
        for shared in try await vault.shared.all() { known[shared.id] = try await shared.items(in: vault).notices() }
        return known
    }

    /// Returns the results for all shared vaults, also for those that the sync has fetched first.
    static func gather(in vault: Vault, after report: SyncReport, except known: Known) async throws -> [VaultFindings] {
        var all: [VaultFindings] = []
        for shared in try await vault.shared.all() {
            let findings = try await Findings.gather(
                in: shared.items(in: vault), after: report.vaults[shared.id] ?? .empty, except: known[shared.id] ?? [])
            all.append(VaultFindings(shared: shared, findings: findings))
        }
        return all
    }

    /// The text for the user, one line each, with the name of the vault.
    var lines: String {
        let report = findings.report
        let name = VisibleText.visible(shared.name)
        let counts = "\(name): fetched \(report.fetched), sent \(report.sent), not sent \(findings.unsent)\n"
        let texts = findings.lines.split(separator: "\n").map { "\(name): \($0)\n" }
        return counts + texts.joined() + shared.lines.map { $0 + "\n" }.joined()
    }

    /// True when the user should check the vault.
    var wantsAttention: Bool { findings.wantsAttention || shared.wantsAttention }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(shared.id, forKey: .id)
        try container.encode(shared.name, forKey: .name)
        try container.encode(findings.report.fetched, forKey: .fetched)
        try container.encode(findings.report.sent, forKey: .sent)
        try container.encode(findings.report.changed.sorted(), forKey: .changed)
        try container.encode(shared.problems.map(VaultProblemRecord.init), forKey: .problems)
        try findings.encode(to: encoder)
    }
}
