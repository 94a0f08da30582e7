import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The statements about the items of an account's first vault, in the forms for vaults.
struct HotVaultItems {
    private typealias Probe = HotStatements.Probe

    private let owner: SkewedDatabase.Owner
    private let vault: VaultID
    private let caller: Caller

    private static let now = HotStatements.now

    init(_ owner: SkewedDatabase.Owner, _ caller: Caller) throws {
        self.owner = owner
        vault = try owner.vault()
        self.caller = caller.in(vault, head: 1, keyID: nil)
    }

    var probes: [HotStatements.Probe] { get throws { try reads + writes + batches + versions + purge } }

    private var id: OwnerID { OwnerID(vault) }

    private func read<Read: ItemRead>(_ read: Read, rows: Int) -> Probe {
        Probe(OwnedByVault(vaultID: vault, read: read), rows: rows)
    }

    private func write<Write: ItemWrite>(_ write: Write, rows: Int) -> Probe {
        Probe(GuardedInVault(caller: caller, write: write), rows: rows)
    }

    private func step<Step: Statement>(_ step: Step, rows: Int) -> Probe { Probe(StepInVault(step: step), rows: rows) }

    private func put(_ id: ItemID, _ precondition: Precondition) throws -> WriteItem {
        WriteItem(
            id: id, precondition: precondition, collection: .standard, format: .opaque, iterations: nil, title: nil,
            body: try SealedBytes([1], format: .opaque))
    }

    private var reads: [Probe] {
        get throws {
            let first = try owner.item(1)
            let items = ItemRange(first: ItemPage.lowest, collection: nil, limit: 100)
            let all = ChangeRange(since: nil, limit: 100, listsAllTombstones: true)
            let late = ChangeRange(
                since: SyncCursor(revision: 19_990, floor: 19_990), limit: 100, listsAllTombstones: true)
            let rare = ChangeRange(
                since: nil, collection: CollectionName("rare"), limit: 100, listsAllTombstones: false)
            return [
                read(FindItem(id: first), rows: 1),
                read(FindItemPart(id: first, revision: 1, column: .body, offset: 0), rows: 1),
                read(HasItem(id: first), rows: 1),
                read(FindItems(range: items, byteLimit: 1 << 22), rows: 101 * 2),
                read(FindItemHeaders(range: items), rows: 101 * 2),
                read(FindSliceEnd(first: ItemPage.lowest), rows: Int(FindSliceEnd.size) + 1),
                read(FindChanges(range: all, byteLimit: 1 << 22), rows: 102),
                read(FindChanges(range: late, byteLimit: 1 << 22), rows: 102),
                read(FindChanges(range: rare, byteLimit: 1 << 22), rows: 2 * Int(ChangeRange.walkSize) + 1),
                read(FindChangeHeaders(range: all), rows: 102),
                read(FindVersions(page: .first(of: first), now: Self.now, limit: 101), rows: 101),
                read(FindVersion(id: first, revision: 10, now: Self.now), rows: 1),
            ]
        }
    }

    private var writes: [Probe] {
        get throws {
            let first = try owner.item(1)
            let deleted = try owner.item(10)
            let creation = CreateItem(write: try put(ItemID.random(), .absent))
            let decision = DecideDeletion(id: first, precondition: .present)
            let replacement = ReplaceKeeping(write: try put(first, .present))
            let restoration = RestoreItemRow(id: deleted, precondition: .present)
            let discarded = MeasureDiscarded(
                vaultID: vault, accountID: owner.account, items: [first, deleted], since: Self.now)
            return [
                write(try put(first, .present), rows: 6),
                write(try put(deleted, .absent), rows: 6),
                write(ReplaceItem(write: try put(first, .present)), rows: 6),
                write(creation, rows: 5),
                step(StoreNewItem(creation: creation, owner: id, now: Self.now), rows: 4),
                write(decision, rows: 12),
                write(DeleteOneItem(decision: decision), rows: 6),
                step(ArchiveContent(decision: decision, owner: id, now: Self.now), rows: 4),
                step(WriteTombstone(decision: decision, owner: id, now: Self.now), rows: 4),
                write(replacement, rows: 6),
                step(KeepReplaced(replacement: replacement, owner: id, now: Self.now), rows: 4),
                step(StoreReplacement(replacement: replacement, owner: id, now: Self.now), rows: 4),
                write(restoration, rows: 10),
                step(StoreRestored(restoration: restoration, owner: id, now: Self.now), rows: 4),
                write(DropContents(room: NeededRoom(items: 200_000, bytes: 0)), rows: 2_100),
                // A former membership of the account also counts, so it reads all members, which the log bounds.
                Probe(discarded, rows: 2_010),
                Probe(
                    CountDiscarded(
                        measured: discarded, found: MeasureDiscarded.Row(bytes: 1, items: 1, revision: 0),
                        memberID: try owner.member(), now: Self.now), rows: 2),
            ]
        }
    }

    private var batches: [Probe] {
        get throws {
            let operations = try [1, 2, 3, 11, 12].map { number in
                BatchOperation(
                    id: try owner.item(number), ifRevision: nil,
                    content: number % 2 == 0
                        ? nil
                        : ItemContent(
                            format: .opaque, collection: .standard, iterations: nil, title: nil,
                            body: try SealedBytes([1], format: .opaque)))
            }
            let puts = try #require(Puts(operations.filter { $0.content != nil }))
            let put = try #require(Puts([operations[0]]))
            let ids = [try owner.item(1), try owner.item(2)]
            let deleted = [try owner.item(10), try owner.item(20)]
            return [
                write(ApplyBatch(operations: operations), rows: 40),
                write(MeasurePuts(puts: puts), rows: 8),
                step(
                    CountPuts(
                        owner: id,
                        effect: CountPuts.Effect(changes: 1, moreItems: 0, moreBytes: 0, fewerTombstones: 0)),
                    rows: 2),
                step(WritePuts(owner: id, puts: put, now: Self.now), rows: 3),
                step(ArchiveContents(owner: id, ids: ids, expiresAt: Self.now), rows: 10),
                step(WriteTombstones(owner: id, ids: ids, revisions: [1, 2], now: Self.now), rows: 4),
                step(ReleaseContents(owner: id, ids: deleted, now: Self.now), rows: 8),
            ]
        }
    }

    private var versions: [Probe] {
        get throws {
            let ids = [try owner.item(1), try owner.item(2)]
            return [
                step(MeasureVersions(owner: id, ids: ids, keptSince: Self.now), rows: 8),
                step(KeepVersions(owner: id, ids: ids, now: Self.now, expiresAt: Self.now), rows: 10),
                step(CountVersions(owner: id, count: 1, bytes: 1), rows: 2),
                step(
                    DropVersions(owner: id, wanted: NeededRoom(items: 64, bytes: 64)),
                    rows: 4 * Int(ItemVersion.dropLimit)),
            ]
        }
    }

    private var purge: [Probe] {
        get throws {
            let first = try owner.item(1)
            let account = AccountID(vault.uuid)
            let slice = 2 * Int(DeletionSlice.rows)
            return [
                step(FindExpiredContents(now: Self.now, except: [], limit: 100), rows: 100),
                step(FindExpiredVersions(now: Self.now, except: [], limit: 100), rows: 100),
                step(FindOldTombstones(before: Self.now, except: [], limit: 100), rows: 100),
                step(RemoveContents(accountID: account, now: Self.now, itemIDs: [try owner.item(10)]), rows: 2),
                step(
                    RemoveVersions(
                        accountID: account, now: Self.now, keys: [VersionKey(item: first, revision: 10)]), rows: 2),
                step(
                    RemoveTombstones(accountID: account, before: Self.now, itemIDs: [try owner.item(10)]), rows: 3),
                step(RemoveSomeItems(owner: id, from: ItemPage.lowest), rows: slice),
                step(RemoveSomeDeletedContents(owner: id, from: ItemPage.lowest), rows: slice),
                step(
                    RemoveSomeReplacedContents(owner: id, from: VersionKey(item: ItemPage.lowest, revision: 0)),
                    rows: slice),
            ]
        }
    }
}
