import CommandLineKit
import SalternClient

/// The results of a command that syncs the account and all shared vaults.
struct SyncFindings {
    let account: Findings
    let vaults: [VaultFindings]
    /// The failures of vaults that this device does not have yet.
    private let unknown: [VaultFailure]

    /// - Parameter known: The notices of the account that were shown before.
    static func gather(
        in vault: Vault, except known: [Notice], _ sync: () async throws -> SyncReport
    ) async throws -> SyncFindings {
        let knownOfVaults = try await VaultFindings.known(in: vault)
        let account = try await Findings.gather(in: vault, except: known, sync)
        let vaults = try await VaultFindings.gather(in: vault, after: account.report, except: knownOfVaults)
        let unknown = account.report.vaultFailures.filter { id, _ in !vaults.contains { $0.id == id } }
            .sorted { $0.key < $1.key }.map { VaultFailure(name: $0.key.description, $0.value) }
        return SyncFindings(account: account, vaults: vaults, unknown: unknown)
    }

    /// The text for the user, one line each.
    var lines: String { account.lines + vaults.map(\.lines).joined() }

    /// Ends the command with another status when a vault was not synced, or when the user should check the results.
    func end() throws {
        if let failure = VaultFailure.summary(of: vaults.compactMap(\.failure) + unknown) { throw failure }
        try account.end()
        if vaults.contains(where: \.wantsAttention) {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }
}

/// The reason for which a shared vault was not synced.
struct VaultFailure {
    /// The name of the vault, or its id.
    let name: String
    let reason: CommandFailure

    init(name: String, _ error: VaultError) {
        self.name = name
        reason = Explanation.explain(error) ?? CommandFailure("\(error)")
    }

    /// Returns the failure of the command: all messages, and the status and the code of the most serious failure.
    static func summary(of failures: [VaultFailure]) -> CommandFailure? {
        let worst = failures.min { ExitStatus.isMoreSerious($0.reason.status, than: $1.reason.status) }?.reason
        guard let worst else { return nil }
        let messages = failures.flatMap { failure in
            failure.reason.messages.map { "\(VisibleText.visible(failure.name)): \($0)" }
        }
        return CommandFailure(messages, status: worst.status, code: worst.code)
    }
}

/// The results of a sync for one shared vault, for the user.
struct VaultFindings: Encodable {
    private let shared: SharedVault
    private let findings: Findings
    /// The reason for which the vault was not synced.
    let failure: VaultFailure?

    var id: SharedVaultID { shared.id }

    private enum CodingKeys: CodingKey {
        case id, name, fetched, sent, changed, problems, error
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
            let failure = report.vaultFailures[shared.id].map { VaultFailure(name: shared.name, $0) }
            all.append(VaultFindings(shared: shared, findings: findings, failure: failure))
        }
        return all
    }

    /// Ends the command with another status when keys in shared vaults could not be replaced.
    static func checkKeys(in vault: Vault) async throws {
        let due = try await vault.shared.all().filter { $0.problems.contains(.keysDue) }
        if due.isEmpty { return }
        throw CommandFailure(
            due.map { "\(VisibleText.visible($0.name)): \(SharedVaultProblem.keysDue.text(in: $0))" },
            status: ExitStatus.attention, code: "attention")
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
        try container.encodeIfPresent(failure?.reason.code, forKey: .error)
        try findings.encode(to: encoder)
    }
}

/// A problem of a shared vault in the form for scripts.
struct VaultProblemRecord: Encodable {
    let kind: String
    /// The member that the problem is about.
    var member: MemberID?
    /// The number of edits or members.
    var count: Int?
    /// The number of the first entry that differs.
    var entry: Int?

    init(_ problem: SharedVaultProblem) {
        kind = problem.kind
        switch problem {
        case .fork(let number): entry = number
        case .anotherHistory(let id): member = id
        case .putAside(let number), .waitsForSeal(let number): count = number
        case .rolledBack, .invalidLog, .missingKey, .keysDue, .foreignKeys, .updateNeeded, .ended, .nearlyFull: break
        }
    }
}

extension SharedVaultProblem {
    /// The stable name of the problem, for scripts.
    var kind: String {
        switch self {
        case .fork: "fork"
        case .anotherHistory: "anotherHistory"
        case .rolledBack: "rolledBack"
        case .invalidLog: "invalidLog"
        case .keysDue: "keysDue"
        case .missingKey: "missingKey"
        case .foreignKeys: "foreignKeys"
        case .updateNeeded: "updateNeeded"
        case .ended: "ended"
        case .putAside: "putAside"
        case .waitsForSeal: "waitsForSeal"
        case .nearlyFull: "nearlyFull"
        }
    }

    /// True when the problem changes the command's status. Others are corrected by the next syncs.
    var wantsAttention: Bool {
        switch self {
        case .fork, .anotherHistory, .rolledBack, .invalidLog, .foreignKeys, .updateNeeded, .ended,
            .putAside, .nearlyFull, .keysDue:
            true
        case .missingKey, .waitsForSeal: false
        }
    }

    /// The problem as a sentence.
    func text(in vault: SharedVault) -> String {
        switch self {
        case .fork(let number):
            "the server has shown two histories of the members, which differ at entry \(number): nothing more is "
                + "written; export its items, and import them into a new vault"
        case .anotherHistory(let member):
            "the device of \(vault.name(of: member)) has another history of the members: compare "
                + "`saltern-client vault members --verify`"
        case .rolledBack: "the server had lost changes of the members; they were sent again"
        case .invalidLog:
            "the server's list of changes of the members is not valid: compare "
                + "`saltern-client vault members --verify`"
        case .keysDue: "your keys may be disclosed: replace them by `saltern-client login`, once an hour"
        case .missingKey: "this device has no key yet: the next sync of a manager sends it"
        case .foreignKeys: "another device has replaced the keys of this member: nothing more is written"
        case .updateNeeded: "another member uses a later version: update this program to write"
        case .ended where vault.hasLeft:
            "you have left the vault; the items stay readable on this device until "
                + "`saltern-client vault leave --forget`"
        case .ended: "the membership has ended; the items stay readable on this device"
        case .putAside(let count):
            counted(count, "version is", "versions are") + " not shown: they break the vault's rules"
        case .waitsForSeal:
            "the edits of \(vault.unsealed.map { VisibleText.visible($0.shownName) }.joined(separator: ", ")) wait for "
                + "a sync, a minute later, of a manager's device that had them; without one, see saltern-client vault seal"
        case .nearlyFull: "its log is nearly full: continue in a new vault"
        }
    }
}
