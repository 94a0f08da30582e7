import CommandLineKit
import SalternClient

/// The shared vaults in the status of an account.
struct StatusOfVaults {
    private let vaults: [SharedVault]
    private var notices: [SharedVaultID: [Notice]] = [:]
    private var held: [SharedVaultID: [HeldDeletion]] = [:]

    init(_ vault: Vault) async throws {
        vaults = try await vault.sharedVaults()
        for shared in vaults {
            notices[shared.id] = try await shared.notices()
            held[shared.id] = try await shared.heldDeletions()
        }
    }

    var records: [VaultRecord] {
        vaults.map { VaultRecord($0, notices: notices[$0.id] ?? [], held: held[$0.id] ?? []) }
    }

    /// The lines for the user, with the names of the vaults.
    var lines: [String] {
        vaults.flatMap { shared in
            let texts = (notices[shared.id] ?? []).map(\.text) + HeldItem.lines(held[shared.id] ?? [])
            return texts.map { "\(VisibleText.visible(shared.name)): \($0)" } + shared.lines
        }
    }

    /// Marks the notices of all vaults as read.
    mutating func forgetNotices() async throws {
        for shared in vaults {
            for notice in notices[shared.id] ?? [] { try await shared.forget(notice) }
            notices[shared.id] = try await shared.notices()
        }
    }

    /// True when the user should check a vault.
    var wantsAttention: Bool {
        vaults.contains { shared in
            shared.wantsAttention || (notices[shared.id] ?? []).wantAttention || !(held[shared.id] ?? []).isEmpty
        }
    }
}
