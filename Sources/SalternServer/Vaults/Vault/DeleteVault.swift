internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `DELETE /v1/vaults/{vault}`: deletes a vault of the caller with all its items, for all members.
struct DeleteVault: AccountEndpoint {
    /// Long enough for a very large vault.
    static let deadline = Duration.seconds(600)

    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        let vaultID: VaultID = try request.parameters.require("vault")
        try await authorization.seat(in: vaultID, atLeast: .manager)
        try await Self.delete(vaultID, authorization)
        return .noContent
    }

    /// Deletes a vault that the caller owns. A recovering one may have another owner, by an entry that is not yet put
    /// back.
    static func delete(_ vaultID: VaultID, _ authorization: Authorization) async throws {
        let (account, now) = (authorization.accountID, authorization.now)
        try await authorization.longTransaction(in: vaultID) { transaction, seat in
            guard seat.ownerAccount == account, seat.ownerMember == seat.memberID else { throw VaultProblem.roleTooLow }
            if let state = try await transaction.execute(FindVaultState(vaultID: vaultID)).first,
                VaultRecovery.end(began: state.recoveryBegan, now: now) != nil
            {
                throw VaultProblem.recovering
            }
            transaction.enqueue(try await VaultDeletion(vaultID: vaultID).run(transaction))
        }
        // Accounts are locked before vaults. Without this step, the list has the vault until it is full
        // (``Memberships``).
        try await authorization.database.withTransaction(key: authorization.key) { transaction in
            transaction.enqueue(LockAccount(accountID: account))
            transaction.enqueue(RemoveMemberships(accountID: account, vaultIDs: [vaultID]))
            try await transaction.note(RecordSecurityEvent(accountID: account, kind: .vaultDeleted, now: now))
        }
    }
}

/// Deletes a vault: all its rows in all tables, in slices. Lists of accounts keep it until they are read again.
struct VaultDeletion: Sendable {
    let vaultID: VaultID

    /// The number of lists of seals, of up to 6 MB each, that one statement removes.
    private static let slice = 32

    /// Deletes the vault, whose row the transaction has locked. After an error the transaction must be rolled back.
    ///
    /// - Returns: The removal of its invitations, to be sent last (``LockOrder``).
    func run(_ transaction: Transaction) async throws -> RemoveInvitations {
        let (invites, lists) = try await transaction.execute(
            FindInviteEntries(vaultID: vaultID), FindSeals(vaultID: vaultID))
        let invitations = invites.compactMap(Self.invitation)
        try await ItemTransaction(transaction, of: vaultID).removeItems()
        for (index, number) in lists.reversed().enumerated() where index % Self.slice == Self.slice - 1 {
            _ = try await transaction.execute(RemoveSeals(vaultID: vaultID, from: number))
        }
        _ = try await transaction.execute(
            RemoveBoxes(vaultID: vaultID), RemovePreviousKeys(vaultID: vaultID), RemoveEntries(vaultID: vaultID),
            RemoveSeals(vaultID: vaultID), RemoveMembers(vaultID: vaultID, except: []), RemoveVault(vaultID: vaultID))
        return RemoveInvitations(vaultID: vaultID, ids: invitations)
    }

    /// Returns the id in an `invite` entry. The log's rules do not matter: a later version may reject the log.
    private static func invitation(_ bytes: [UInt8]) -> InvitationID? {
        guard let entry = try? Entry(bytes), case .invite(let terms) = entry.payload else { return nil }
        return InvitationID(terms.id.bytes)
    }
}

/// Finds the entries of a vault that open invitations.
struct FindInviteEntries: Statement {
    typealias Row = [UInt8]

    let vaultID: VaultID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT e.entry FROM saltern.vault_entries e
        WHERE e.vault_id = \(\.vaultID) AND e.kind = \(SQLFragment(EntryKind.invite))
        """
}

struct RemoveBoxes: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vault_boxes b WHERE b.vault_id = \(\.vaultID)"
}

/// Removes the members of a vault, except for some.
struct RemoveMembers: Statement {
    let vaultID: VaultID
    let except: [MemberID]

    static let sql: SQL<Self> = """
        DELETE FROM saltern.vault_members m
        WHERE m.vault_id = \(\.vaultID) AND m.member_id <> ALL(\(\.except)::uuid[])
        """
}

struct RemoveVault: Statement {
    let vaultID: VaultID

    static let sql: SQL<Self> = "DELETE FROM saltern.vaults a WHERE a.vault_id = \(\.vaultID)"
}
