internal import HTTPCore
internal import Postgres
internal import VaultLog

/// `POST /v1/vaults`: founds a vault with the first entry of its log. The caller owns it. A repeated request returns
/// the same result.
struct CreateVault: AccountEndpoint {
    func respond(to request: Request, authorization: Authorization) async throws -> Response {
        _ = try await authorization.identify()
        let entry = try JSONBody.read(request) { try $0.entry() }
        let log: MembershipLog
        do throws(EntryRejection) { log = try MembershipLog(founding: entry) } catch {
            throw VaultProblem.refused(error)
        }
        let vaultID = VaultID(log.vault.bytes)
        let account = authorization.accountID
        let isNew = try await authorization.transaction { transaction in
            let seats = try await transaction.execute(FindSeat(vaultID: vaultID, accountID: account))
            if !seats.isEmpty { return false }
            try VaultTime.check(entry, at: authorization.now)
            let count = try await Memberships.admit(account, owning: true, in: transaction)
            try await Self.store(entry, log, account, plan: count.plan, in: transaction, now: authorization.now)
            try await transaction.note(
                RecordSecurityEvent(accountID: account, kind: .vaultFounded, now: authorization.now))
            return true
        }
        return AppendEntry.reply(isNew ? .created : .ok, entry, vault: vaultID, revision: nil)
    }

    private static func store(
        _ entry: Entry, _ log: MembershipLog, _ account: AccountID, plan: String, in transaction: Transaction,
        now: Timestamp
    ) async throws {
        let vaultID = VaultID(log.vault.bytes)
        let founder = MemberID(entry.author.bytes)
        transaction.enqueue(
            listing: InsertMembership(accountID: account, vaultID: vaultID, memberID: founder, owns: true, now: now))
        let vault = InsertVault(
            vaultID: vaultID, ownerAccount: account, founder: founder, plan: plan, headHash: entry.hash.bytes,
            keyID: log.currentGeneration.keyID.number, now: now)
        // Another account has sent the same entry before, or the caller has left the vault.
        guard try await transaction.execute(vault).first != nil else { throw VaultProblem.refused(.repeatedID) }
        transaction.enqueue(
            PutMembers(
                vaultID: vaultID, members: [founder], holder: account, roles: [Int32(VaultRole.manager.rawValue)],
                since: [1]))
        transaction.enqueue(InsertEntries(vaultID: vaultID, entries: [entry], arrivedAt: now))
    }
}

/// The list of an account's vaults.
enum Memberships {
    /// Checks that the account's plan allows one more vault. The account's row must be locked.
    ///
    /// - Parameter vault: A vault that does not count, because the request may repeat one that has added it.
    ///
    /// At the limit it first removes those of vaults that the account has left or that are gone.
    static func admit(
        _ account: AccountID, owning: Bool, in transaction: Transaction, again vault: VaultID? = nil
    ) async throws -> CountMemberships.Row {
        for isSwept in [false, true] {
            guard let count = try await transaction.execute(CountMemberships(accountID: account, except: vault)).first
            else {
                throw Unauthenticated()
            }
            guard let problem = CountMemberships.exceeded(count, owning: owning) else { return count }
            if isSwept { throw problem }
            let listed = try await transaction.execute(Owned(accountID: account, read: FindMemberships())).map(
                \.vaultID)
            let present = Set(try await transaction.execute(FindHeldVaults(ids: listed, accountID: account)))
            _ = try await transaction.execute(
                RemoveMemberships(accountID: account, vaultIDs: listed.filter { !present.contains($0) }))
        }
        throw Unauthenticated()
    }
}

/// Finds the vaults among `ids` that an account is a member of, or can be after the recovery.
///
/// Only the first part can use the index of present members, so both are not one condition. A cluster pushes their
/// union down to the shards only as a subquery.
struct FindHeldVaults: Statement {
    typealias Row = VaultID

    let ids: [VaultID]
    let accountID: AccountID

    static let isReadOnly = true
    static let sql: SQL<Self> = """
        SELECT u.vault_id FROM (
            (SELECT a.vault_id \(held) AND \(VaultSeat.isLive("live")))
            UNION (SELECT a.vault_id \(held) AND a.settled_number IS NOT NULL)
        ) u
        """
    private static let held: SQL<Self> = """
        FROM saltern.vaults a JOIN saltern.vault_members live ON live.vault_id = a.vault_id
        WHERE a.vault_id = ANY(\(\.ids)::uuid[]) AND live.vault_id = ANY(\(\.ids)::uuid[])
            AND live.holder = \(\.accountID)
        """
}
