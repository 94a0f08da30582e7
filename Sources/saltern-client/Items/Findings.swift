import CommandLineKit
import SalternClient

/// The results of a command that syncs, for the user.
struct Findings: Encodable {
    let report: SyncReport
    /// The notices that are new, or last. `saltern-client status` shows all of them.
    let notices: [Notice]
    /// The number of changes that the server does not have.
    let unsent: Int
    /// The waiting deletions of other devices.
    let held: [HeldDeletion]
    /// The names of the passkeys in the notices, as far as the server returns them.
    private let passkeyNames: [Base64URLBytes: String]

    private enum CodingKeys: CodingKey {
        case removed, unsent, deletionsHeld, heldItems, notices
    }

    /// - Parameter known: The notices that were shown before.
    static func gather(
        in vault: Vault, except known: [Notice], _ sync: () async throws -> SyncReport
    ) async throws -> Findings {
        let report = try await sync()
        let notices = try await vault.notices().unreported(after: known)
        return Findings(
            report: report, notices: notices, unsent: try await vault.unsentCount(),
            held: try await vault.heldDeletions(), passkeyNames: await passkeyNames(for: notices, in: vault))
    }

    /// Returns the results for the items of a shared vault.
    /// - Parameter known: The notices that were shown before.
    static func gather(
        in items: OwnedItems, after report: SyncReport, except known: [Notice]
    ) async throws -> Findings {
        Findings(
            report: report, notices: try await items.notices().unreported(after: known),
            unsent: try await items.unsentCount(), held: try await items.heldDeletions(), passkeyNames: [:])
    }

    fileprivate static func passkeyNames(for notices: [Notice], in vault: Vault) async -> [Base64URLBytes: String] {
        guard notices.contains(where: { !$0.passkeys.isEmpty }), let listed = try? await vault.passkeys() else {
            return [:]
        }
        return Dictionary(listed.map { ($0.id, $0.name) }) { first, _ in first }
    }

    /// Returns the line about deletions that are too few to need approval.
    static func line(ofRemoved count: Int) -> String {
        "deleted elsewhere: \(count) (saltern-client list --deleted)"
    }

    /// The text for the user, one line each.
    var lines: String {
        (report.removed.isEmpty ? "" : Self.line(ofRemoved: report.removed.count) + "\n")
            + (HeldItem.lines(held) + notices.map { $0.text(naming: passkeyNames) }).map { $0 + "\n" }.joined()
    }

    /// True when the user should check the results.
    var wantsAttention: Bool { report.isHeld || unsent > 0 || notices.wantAttention }

    /// Ends the command with another status when the user should check the results.
    func end() throws {
        if wantsAttention { throw CommandFailure([], status: ExitStatus.attention, code: "attention") }
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

/// Passkeys that a change of password or userid has stopped from unlocking, for the user.
struct StoppedPasskeys {
    let notices: [NoticeRecord]
    /// The text for the user, one line each.
    let lines: String

    /// - Parameter known: The notices before the change.
    init(in vault: Vault, except known: [Notice]) async throws {
        let new = try await vault.notices().unreported(after: known).filter { $0.kind == .passkeysStoppedUnlocking }
        let names = await Findings.passkeyNames(for: new, in: vault)
        notices = new.map(NoticeRecord.init)
        lines = new.map { $0.text(naming: names) + "\n" }.joined()
    }
}

extension [Notice] {
    /// True when the notices change the command's status. The advice to create another printed code is repeated until
    /// it is followed, and scripts succeed.
    var wantAttention: Bool { contains { $0.kind != .recoveryCodeOutdated } }

    /// Returns the new notices, and those that last until they are corrected.
    func unreported(after known: some Sequence<Notice>) -> [Notice] {
        let numbers = Set(known.map(\.number))
        return filter { !numbers.contains($0.number) || $0.kind.isLasting }
    }
}

/// An item that another device has deleted and that waits for approval, in the form for scripts.
struct HeldItem: Encodable {
    let id: ItemID
    let collection: String
    let title: String?

    init(_ deletion: HeldDeletion) {
        id = deletion.id
        collection = deletion.collection
        title = deletion.title
    }

    /// The maximum number of names in text output. `--json` has all of them.
    private static let shownNames = 20

    /// Returns the names, one line each.
    static func names(_ names: [String]) -> [String] {
        let shown = names.prefix(shownNames).map { "  waits: \(VisibleText.visible($0))" }
        return names.count > shownNames
            ? shown + ["  and \(names.count - shownNames) more: see --json"] : Array(shown)
    }

    /// Returns the lines about deletions by other devices, by collection.
    static func lines(_ deletions: [HeldDeletion]) -> [String] {
        let collections = Dictionary(grouping: deletions, by: \.collection).sorted { $0.key < $1.key }
        return collections.flatMap { collection, items in
            [
                counted(items.count, "item") + " of the collection \(VisibleText.visible(collection)) "
                    + (items.count == 1 ? "was" : "were") + " deleted elsewhere:"
            ]
                + names(items.map { $0.title.flatMap { $0.isEmpty ? nil : $0 } ?? $0.id.description })
        }
    }
}
