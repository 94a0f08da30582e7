import CommandLineKit
import SalternClient

/// What a command that syncs has found, for a person to look at.
struct Findings: Encodable {
    let report: SyncReport
    /// Those that are new, or go on. `saltern-client status` says all of them.
    let notices: [Notice]
    /// How many changes the server does not have.
    let unsent: Int
    /// What was deleted elsewhere and waits.
    let held: [HeldDeletion]

    private enum CodingKeys: CodingKey {
        case removed, unsent, deletionsHeld, heldItems, notices
    }

    /// - Parameter known: What was said before.
    static func gather(
        in vault: Vault, except known: [Notice], _ sync: () async throws -> SyncReport
    ) async throws -> Findings {
        let report = try await sync()
        return Findings(
            report: report, notices: try await vault.notices().unreported(after: known),
            unsent: try await vault.unsentCount(), held: try await vault.heldDeletions())
    }

    /// How a person hears of deletions that are too few to ask about.
    static func line(ofRemoved count: Int) -> String {
        "deleted elsewhere: \(count) (saltern-client list --deleted)"
    }

    /// What a person reads, a line each.
    var lines: String {
        (report.removed.isEmpty ? "" : Self.line(ofRemoved: report.removed.count) + "\n")
            + (HeldItem.lines(held) + notices.map(\.text)).map { $0 + "\n" }.joined()
    }

    /// Ends the command with another status when a person should look.
    func end() throws {
        if report.isHeld || unsent > 0 || notices.wantAttention {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(report.removed.sorted(), forKey: .removed)
        try container.encode(unsent, forKey: .unsent)
        try container.encode(report.isHeld, forKey: .deletionsHeld)
        try container.encode(held.map(HeldItem.init), forKey: .heldItems)
        try container.encode(notices.map(NoticeRecord.init), forKey: .notices)
    }
}

extension [Notice] {
    /// Whether a command ends with another status because of them. The advice to make another printed code is repeated until
    /// that is done, and scripts go on.
    var wantAttention: Bool { contains { $0.kind != .recoveryCodeOutdated } }

    /// Those that were not said before, and what is said until somebody has mended it.
    func unreported(after known: some Sequence<Notice>) -> [Notice] {
        let numbers = Set(known.map(\.number))
        return filter { !numbers.contains($0.number) || $0.kind.isLasting }
    }
}
