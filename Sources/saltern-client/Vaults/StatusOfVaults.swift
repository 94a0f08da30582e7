import CommandLineKit
import SalternClient

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
