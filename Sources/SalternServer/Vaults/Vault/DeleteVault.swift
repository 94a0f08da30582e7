internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `DELETE /v1/vaults/{vault}`: deletes a vault of the caller with all its items, for all members.
struct DeleteVault: AccountEndpoint {
    /// Long enough for a very large vault.
    static let deadline = Duration.seconds(600)

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.transaction(
            in: vaultID, atLeast: .manager, use: authorization.longUse
        ) { transaction, seat in
            guard seat.ownerAccount == authorization.accountID else { throw VaultProblem.roleTooLow }
            let invitations = try await VaultDeletion(vaultID: vaultID).run(transaction)
            try await transaction.note(
                RecordSecurityEvent(
                    accountID: authorization.accountID, kind: .vaultDeleted, now: authorization.now))
            transaction.enqueue(RemoveInvitations(ids: invitations))
        }
        _ = try await authorization.database.execute(
            RemoveMemberships(accountID: authorization.accountID, vaultIDs: [vaultID]), key: authorization.key)
        return .noContent
    }
}

/// Deletes a vault: all its rows in all tables, in slices. Lists of accounts keep it until they are read again.
struct VaultDeletion: Sendable {
    let vaultID: VaultID

    /// Deletes the vault, whose row the transaction has locked. After an error the transaction must be rolled back.
    ///
    /// - Returns: The invitations, to be removed last (``LockOrder``).
    func run(_ transaction: Transaction) async throws -> [InvitationID] {
        let log = try await StoredLog(of: vaultID, in: transaction).log
        try await ItemTransaction(transaction, of: vaultID).removeItems()
        _ = try await transaction.execute(
            RemoveBoxes(vaultID: vaultID), RemovePreviousKeys(vaultID: vaultID), RemoveEntries(vaultID: vaultID),
            RemoveSeals(vaultID: vaultID), RemoveMembers(vaultID: vaultID), RemoveVault(vaultID: vaultID))
        return log.invitations.keys.map { InvitationID($0.bytes) }
    }
}

struct RemoveBoxes: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_boxes b WHERE b.vault_id = \(\.vaultID)"
}

struct RemoveEntries: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_entries e WHERE e.vault_id = \(\.vaultID)"
}

struct RemoveMembers: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_members m WHERE m.vault_id = \(\.vaultID)"
}

struct RemoveVault: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vaults a WHERE a.vault_id = \(\.vaultID)"
}
