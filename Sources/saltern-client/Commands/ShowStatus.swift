import CommandLineKit
import Foundation
import SalternClient

struct ShowStatus: Command {
    static let words = ["status"]
    static let summary = "show session, unsent changes, notices, plan and usage"
    static let example = "saltern-client status"
    static let help = """
        \(AccountOption.help)
          --seen                marks notices as read; unsolved problems stay
          --json                one object, for scripts

        Without --account, and with several accounts, lists them. Exit status 2: there
        are notices.
        """

    private struct Record: Encodable {
        struct Plan: Encodable {
            let name: String
            let limits: AccountDescription.Limits
            let usage: AccountDescription.Usage
            /// True with one-time codes or a passkey. Nil without codes and without a reply about passkeys.
            let secondFactor: Bool?
            let oneTimeCodes: Bool
            /// The numbers of passkeys. Nil without a reply about them.
            let passkeys: Int?
            let unlockingPasskeys: Int?
            let recoveryCode: Bool

            init(_ description: AccountDescription, passkeys: [PasskeyDescription]?) {
                name = description.plan
                limits = description.limits
                usage = description.usage
                oneTimeCodes = description.secondFactor.totp
                secondFactor = oneTimeCodes ? true : passkeys.map { !$0.isEmpty }
                self.passkeys = passkeys?.count
                unlockingPasskeys = passkeys?.count(where: \.unlocks)
                recoveryCode = description.recovery.set
            }

            /// The second factors, for the user.
            var secondFactors: String {
                let codes = oneTimeCodes ? ["one-time codes"] : []
                guard let passkeys, let unlockingPasskeys else {
                    return (codes + ["no reply about passkeys"]).joined(separator: ", ")
                }
                guard oneTimeCodes || passkeys > 0 else { return "no" }
                let keys = "\(counted(passkeys, "passkey")), of which \(unlockingPasskeys) unlock"
                return (codes + (passkeys == 0 ? [] : [keys])).joined(separator: ", ")
            }
        }

        let account: String
        let userid: String
        let server: String
        let collections: [String: Int]
        let unsent: Int
        /// The first unsent items, without deletions.
        let unsentItems: [ItemLine]
        let deleted: Int
        let deletionsHeld: Bool
        /// The waiting deletions of other devices.
        let heldItems: [HeldItem]
        let notices: [NoticeRecord]
        let vaults: [VaultRecord]
        let online: Bool
        let plan: Plan?
    }

    /// The maximum number of unsent items that are shown. There are usually few.
    private static let shownItems = 10

    private let account: AccountOption
    private let isNamed: Bool
    private let forgets: Bool
    private let asJSON: Bool

    init(_ arguments: inout Arguments) throws(UsageError) {
        asJSON = arguments.flag("--json")
        forgets = arguments.flag("--seen")
        account = try AccountOption(&arguments)
        isNamed = account.isNamed
    }

    func run(_ console: Console) async throws {
        let names = try ProfileStore(console.environment).names().map(\.description)
        if !isNamed, names.count > 1 {
            return try console.show(["accounts": names], asJSON: asJSON) { VisibleText.list(names) }
        }
        let account = try await account.open(console)
        let vault = account.vault
        let notices = try await vault.notices()
        var shared = try await StatusOfVaults(vault)
        let plan = await Result { () async throws(VaultError) in try await vault.account() }
        // The data of this device is shown in any case.
        var refusal: VaultError?
        if case .failure(let error) = plan, !error.isForWantOfNetwork { refusal = error }
        if case .success = plan { try? await account.learnPins() }
        let description = try? plan.get()
        let passkeys = description == nil ? nil : try? await vault.passkeys()
        let record = Record(
            account: account.name.description, userid: account.profile.userid, server: account.profile.server,
            collections: try await vault.collectionCounts(), unsent: try await vault.unsentCount(),
            // A locked vault has numbers, and no titles.
            unsentItems: ((try? await vault.unsentItems(limit: Self.shownItems)) ?? []).map(ItemLine.init),
            deleted: (try? await vault.deletedItems().count) ?? 0,
            deletionsHeld: try await vault.areDeletionsHeld(),
            heldItems: try await vault.heldDeletions().map(HeldItem.init),
            notices: notices.map(NoticeRecord.init), vaults: shared.records, online: description != nil,
            plan: description.map { Record.Plan($0, passkeys: passkeys) })
        let network = refusal == nil ? "the server cannot be reached" : "no reply about the account"
        try console.show(record, asJSON: asJSON) {
            Self.text(record, notices.map(\.text) + shared.lines, network: network)
        }
        // A notice that could not be printed was not read.
        if forgets, !console.hasLostOutput {
            for notice in notices { try await vault.forget(notice) }
            try await shared.forgetNotices()
        }
        if let refusal { throw refusal }
        let isLeft = try await vault.notices().wantAttention
        if record.deletionsHeld || isLeft || shared.wantsAttention {
            throw CommandFailure([], status: ExitStatus.attention, code: "attention")
        }
    }

    private static func text(_ record: Record, _ findings: [String], network: String) -> String {
        var lines = [
            ("account", record.account), ("userid", record.userid), ("server", record.server),
            ("items", record.collections.values.reduce(0, +).formatted()), ("not sent", record.unsent.formatted()),
            ("deleted", record.deleted.formatted()),
        ]
        if !record.vaults.isEmpty { lines.append(("shared vaults", record.vaults.count.formatted())) }
        if let plan = record.plan {
            lines += [
                ("plan", plan.name),
                (
                    "stored",
                    "\(plan.usage.items) of \(counted(plan.limits.items, "item")), "
                        + "\(plan.usage.bytes) of \(counted(plan.limits.bytes, "byte"))"
                ),
                ("sessions", "\(plan.usage.sessions) of \(plan.limits.sessions)"),
                ("shares", "\(plan.usage.shares) of \(plan.limits.shares)"),
                ("second factor", plan.secondFactors),
                ("recovery code", plan.recoveryCode ? "yes" : "no"),
            ]
        } else {
            lines.append(("network", network))
        }
        lines += record.unsentItems.map { item in
            (
                "not sent",
                "\(item.id)  \(item.bytes.map { counted($0, "byte") } ?? "unreadable")\(item.tooLong ? ", too long" : "")  "
                    + (item.title ?? "")
            )
        }
        if record.deletionsHeld { lines.append(("look", "deletions wait: see `sync --help`, --allow-deletions")) }
        lines += findings.map { ("look", $0) }
        var table = Table([.text("what"), .text("now")])
        for (name, value) in lines { table.append([name, value]) }
        return table.takeText()
    }
}

extension Result where Failure == VaultError {
    fileprivate init(_ body: () async throws(VaultError) -> Success) async {
        do throws(VaultError) { self = .success(try await body()) } catch { self = .failure(error) }
    }
}

extension VaultError {
    /// True when the only cause is that the server is unreachable.
    var isForWantOfNetwork: Bool {
        if case .unavailable(let error) = self { error.isPassing } else { false }
    }
}

/// The shared vaults in the status of an account.
struct StatusOfVaults {
    private let vault: Vault
    private var vaults: [SharedVault]
    private var unsent: [SharedVaultID: Int] = [:]
    private var notices: [SharedVaultID: [Notice]] = [:]
    private var held: [SharedVaultID: [HeldDeletion]] = [:]

    init(_ vault: Vault) async throws {
        self.vault = vault
        vaults = try await vault.shared.all()
        for shared in vaults {
            let items = shared.items(in: vault)
            unsent[shared.id] = try await items.unsentCount()
            notices[shared.id] = try await items.notices()
            held[shared.id] = try await items.heldDeletions()
        }
    }

    var records: [VaultRecord] {
        vaults.map { shared in
            VaultRecord(
                shared, unsent: unsent[shared.id] ?? 0, notices: notices[shared.id] ?? [], held: held[shared.id] ?? [])
        }
    }

    /// The lines for the user, with the names of the vaults.
    var lines: [String] {
        vaults.flatMap { shared in
            let waiting = unsent[shared.id] ?? 0
            let texts =
                (waiting > 0 ? ["not sent: \(counted(waiting, "change"))"] : [])
                + (notices[shared.id] ?? []).map(\.text) + HeldItem.lines(held[shared.id] ?? [])
            return texts.map { "\(VisibleText.visible(shared.name)): \($0)" } + shared.lines
        }
    }

    /// Marks the notices and findings of all vaults as read.
    mutating func forgetNotices() async throws {
        for shared in vaults {
            try await shared.acknowledgeProblems()
            let items = shared.items(in: vault)
            for notice in notices[shared.id] ?? [] { try await items.forget(notice) }
            notices[shared.id] = try await items.notices()
        }
        vaults = try await vault.shared.all()
    }

    /// True when the user should check a vault.
    var wantsAttention: Bool {
        vaults.contains { shared in
            shared.wantsAttention || (notices[shared.id] ?? []).wantAttention || !(held[shared.id] ?? []).isEmpty
        }
    }
}
