import Cryptography
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The statements about an account's vaults, their members and logs, that requests, streams and the purge send.
///
/// The first vault of the large account has 100 members, 1,900 former ones, and 4,000 entries.
struct HotVaultStatements {
    private typealias Probe = HotStatements.Probe

    private let owner: SkewedDatabase.Owner
    private let account: AccountID
    private let vault: VaultID
    private let member: MemberID
    /// All vaults of the account.
    private let vaults: [VaultID]

    private static let now = HotStatements.now
    private static let hash = [UInt8](repeating: 0, count: 32)

    init(_ owner: SkewedDatabase.Owner) throws {
        self.owner = owner
        account = owner.account
        vault = try owner.vault()
        member = try owner.member()
        vaults = try (1...100).map { try owner.vault($0) }
    }

    var probes: [HotStatements.Probe] {
        get throws { try lists + polls + members + log + keys + invitations + deletion }
    }

    private var lists: [Probe] {
        var query = FindMovedVaults.Query()
        for vault in vaults { query.append(vault, of: account, revision: 0) }
        let moved = FindMovedVaults(query: query)
        return [
            Probe(Owned(accountID: account, read: FindMemberships()), rows: 100),
            Probe(CountMemberships(accountID: account), rows: 101),
            Probe(
                InsertMembership(accountID: account, vaultID: vault, memberID: member, owns: true, now: Self.now),
                rows: 1),
            Probe(MoveListRevision(accountID: account), rows: 1),
            // Statistics of a time when accounts had one vault let it read the account's list.
            Probe(RemoveMemberships(accountID: account, vaultIDs: [vault]), rows: 100),
            Probe(SetOwnership(accountID: account, vaultID: vault, owns: true), rows: 100),
            Probe(FindListedVaults(accounts: [account.uuid]), rows: 100),
            Probe(moved, rows: 200),
            Probe(FindLiveMemberships(find: moved), rows: 200),
            // It may read the boxes of all members.
            Probe(FindVaults(ids: vaults, accountID: account), rows: 3_600),
            Probe(FindVaults(ids: [vault], accountID: account), rows: 3),
            Probe(FindHeldVaults(ids: vaults, accountID: account), rows: 300),
            Probe(FindUnlockedAccounts(ids: [account]), rows: 1),
            Probe(Owned(accountID: account, read: ExportMemberships()), rows: 100),
        ]
    }

    /// The streams of 1,000 small accounts with a vault each.
    private var polls: [Probe] {
        get throws {
            var sessions = FindMovedRevisions.Query()
            var memberships = FindMovedVaults.Query()
            for number in 1_001...2_000 {
                let owner = try SkewedDatabase.Owner("", "00000000-0000-0000-0001-00000000\(number)")
                sessions.append(SessionKey(accountID: owner.account, tokenHash: owner.tokenHash), revision: 0)
                memberships.append(try owner.vault(), of: owner.account, revision: 0)
            }
            let moved = FindMovedRevisions(query: sessions, now: Self.now, idleSince: Self.now - .seconds(31 * 86_400))
            let vaults = FindMovedVaults(query: memberships)
            return [
                Probe(moved, rows: 2_000),
                Probe(FindLiveSessions(find: moved), rows: 2_000),
                Probe(vaults, rows: 2_000),
                Probe(FindLiveMemberships(find: vaults), rows: 2_000),
            ]
        }
    }

    private var members: [Probe] {
        let find = FindSeat(vaultID: vault, accountID: account)
        return [
            Probe(find, rows: 2),
            Probe(IsMember(vaultID: vault, accountID: account), rows: 1),
            Probe(LockVault(find: find), rows: 2),
            Probe(StepInVault(step: LockAccount(accountID: AccountID(vault.uuid))), rows: 1),
            Probe(IsOwner(vaultID: vault, accountID: account), rows: 2),
            Probe(FindMembers(vaultID: vault), rows: 200),
            Probe(
                PutMembers(vaultID: vault, members: [member], holder: account, roles: [3], since: [2]), rows: 1),
            Probe(FindHolder(vaultID: vault, memberID: member), rows: 1),
            Probe(BindMember(vaultID: vault, memberID: member, holder: account), rows: 1),
            Probe(
                StoreSeen(
                    vaultID: vault, memberID: member, number: 2, hash: [0], signature: Self.hash), rows: 2),
            // These are also about former members, which the log bounds.
            Probe(ForgetFormerHolders(vaultID: vault, since: Self.now), rows: 2_000),
            Probe(ForgetHolder(vaultID: vault, accountID: account), rows: 2_000),
            Probe(
                FindOtherMember(vaultID: vault, memberID: member, holder: account, ended: true), rows: 2_000),
        ]
    }

    private var log: [Probe] {
        [
            Probe(FindVaultState(vaultID: vault), rows: 1),
            Probe(FindSealLimit(vaultID: vault), rows: 1),
            Probe(LockVaultForJoin(vaultID: vault), rows: 1),
            Probe(EndRecovery(vaultID: vault, owner: member), rows: 1),
            Probe(
                MoveHead(
                    vaultID: vault, number: 4_001, hash: Self.hash, keyID: 1, generationNumber: 1, isRotationDue: false,
                    owner: member, settled: nil), rows: 1),
            Probe(MoveVaultPlan(vaultID: vault, ownerAccount: account, plan: "pro"), rows: 1),
            Probe(MoveOwner(vaultID: vault, ownerAccount: account, plan: "pro"), rows: 1),
            Probe(FindEntries(vaultID: vault), rows: 4_000),
            Probe(FindEntries(vaultID: vault, after: 3_000, limit: 501), rows: 501),
            Probe(FindEntry(vaultID: vault, number: 1), rows: 1),
            Probe(RemoveEntries(vaultID: vault, from: 3_990), rows: 11),
            // Twice all entries of a year.
            Probe(CountEntries(vaultID: vault, author: member, owner: member, now: Self.now), rows: 8_000),
            Probe(FindItemAbove(vaultID: vault, revision: 19_000), rows: 1),
        ]
    }

    private var keys: [Probe] {
        [
            Probe(InsertBoxes(vaultID: vault, generation: 1, members: [member], boxes: [Self.hash]), rows: 1),
            Probe(FindBoxes(vaultID: vault, accountID: account), rows: 101),
            Probe(RemoveOtherBoxes(vaultID: vault, generation: 1, members: [member]), rows: 100),
            Probe(RemoveBox(vaultID: vault, memberID: member), rows: 1),
            Probe(InsertPreviousKeys(vaultID: vault, generations: [1], keys: [Self.hash]), rows: 1),
            Probe(FindPreviousKeys(vaultID: vault), rows: 1_000),
            Probe(RemovePreviousKeys(vaultID: vault, from: 990), rows: 11),
            Probe(
                InsertSealList(vaultID: vault, number: 4_000, author: member, sealer: member, list: [0]), rows: 1),
            Probe(FindSeals(vaultID: vault), rows: 300),
            Probe(FindSealList(vaultID: vault, number: 1), rows: 1),
            Probe(RemoveSeals(vaultID: vault, from: 290), rows: 11),
            Probe(RemoveReplacedSeals(vaultID: vault, author: member, sealer: member), rows: 600),
            Probe(RemoveEarlySeals(vaultID: vault, sealer: member, budget: 10), rows: 600),
            Probe(RemoveFormerSeals(vaultID: vault, budget: 10), rows: 620),
        ]
    }

    private var invitations: [Probe] {
        get throws {
            let id = try owner.invitation()
            let ids = try (1...64).map { try owner.invitation($0) }
            let token = TokenHash(SHA256.hash(Array("t".utf8)))
            return [
                Probe(FindInvitation(id: id, tokenHash: token, now: Self.now), rows: 1),
                Probe(CountOpening(id: id), rows: 1),
                Probe(FindOpenings(vaultID: vault, ids: ids), rows: 64),
                Probe(
                    InsertInvitation(
                        id: .random(), vaultID: vault, tokenHash: token, preview: [0], keyBox: [0], now: Self.now,
                        expiresAt: Self.now), rows: 1),
                Probe(RemoveInvitations(vaultID: vault, ids: ids), rows: 64),
                Probe(FindExpiredInvitations(now: Self.now, limit: 100), rows: 100),
                Probe(RemoveExpiredInvitations(ids: ids, now: Self.now), rows: 64),
            ]
        }
    }

    private var deletion: [Probe] {
        [
            Probe(FindInviteEntries(vaultID: vault), rows: 4_000),
            Probe(RemoveBoxes(vaultID: vault), rows: 100),
            Probe(RemoveMembers(vaultID: vault, except: []), rows: 2_000),
            Probe(RemoveVault(vaultID: vault), rows: 1),
        ]
    }
}
