import Cryptography
import HTTPCore
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The statements that requests send, for one account of a ``SkewedDatabase``, each with how many rows it may touch.
struct HotStatements {
    /// A statement, and its bound.
    struct Probe {
        let name: String
        let rows: Int
        private let make: (Bool) -> Explain

        init<S: Statement>(_ statement: S, rows: Int) {
            name = String(describing: S.self)
            self.rows = rows
            make = { Explain(statement, isGeneric: $0) }
        }

        func explain(isGeneric: Bool) -> Explain { make(isGeneric) }
    }

    /// A day after everything was made.
    static let now = Timestamp(unixSeconds: 1_767_312_000)

    private let owner: SkewedDatabase.Owner
    private let caller: Caller

    init(_ owner: SkewedDatabase.Owner) throws {
        self.owner = owner
        caller = Caller(
            SessionKey(accountID: owner.account, tokenHash: owner.tokenHash), now: Self.now, policy: SessionPolicy())
    }

    var probes: [Probe] {
        get async throws {
            try await items + sync + sessions + shares + rest + HotVaultStatements(owner).probes
                + HotVaultItems(owner, caller).probes + HotEventStatements(owner, caller).probes
        }
    }

    private func read<Read: AccountRead>(_ read: Read, rows: Int) -> Probe {
        Probe(Owned(accountID: owner.account, read: read), rows: rows)
    }

    private func write<Write: AccountWrite>(_ write: Write, rows: Int) -> Probe {
        Probe(Guarded(caller: caller, write: write), rows: rows)
    }

    private func put(_ id: ItemID, _ precondition: Precondition) throws -> WriteItem {
        WriteItem(
            id: id, precondition: precondition, collection: .standard, format: .opaque, iterations: nil, title: nil,
            body: try Self.sealed)
    }

    private static var sealed: SealedBytes {
        get throws { try SealedBytes(SecureRandom.bytes(64), format: .opaque) }
    }

    private var items: [Probe] {
        get throws {
            let first = try owner.item(1)
            let range = ItemRange(first: ItemPage.lowest, collection: nil, limit: 100)
            let decision = DecideDeletion(id: first, precondition: .present)
            let second = try owner.item(2)
            let replacement = ReplaceKeeping(write: try put(first, .present))
            let restoration = RestoreItemRow(id: try owner.item(10), precondition: .present)
            return [
                Probe(Authenticate(caller: caller), rows: 2),
                Probe(AuthenticateForWrite(caller: caller), rows: 2),
                Probe(TouchSession(caller: caller), rows: 2),
                read(FindItem(id: first), rows: 1),
                read(FindItems(range: range, byteLimit: 1 << 22), rows: 101 * 2),
                read(FindItemHeaders(range: range), rows: 101 * 2),
                read(FindSliceEnd(first: ItemPage.lowest), rows: Int(FindSliceEnd.size) + 1),
                write(try put(first, .present), rows: 6),
                write(try put(ItemID.random(), .absent), rows: 6),
                write(try put(owner.item(10), .absent), rows: 6),
                write(ReplaceItem(write: try put(first, .present)), rows: 5),
                write(ReplaceItem(write: try put(first, .revision(1))), rows: 5),
                write(CreateItem(write: try put(ItemID.random(), .absent)), rows: 5),
                write(DeleteOneItem(decision: decision), rows: 6),
                write(decision, rows: 12),
                Probe(ArchiveContent(decision: decision, owner: OwnerID(owner.account), now: Self.now), rows: 4),
                Probe(WriteTombstone(decision: decision, owner: OwnerID(owner.account), now: Self.now), rows: 4),
                write(replacement, rows: 6),
                Probe(KeepReplaced(replacement: replacement, owner: OwnerID(owner.account), now: Self.now), rows: 4),
                Probe(
                    StoreReplacement(replacement: replacement, owner: OwnerID(owner.account), now: Self.now), rows: 4),
                Probe(
                    MeasureVersions(owner: OwnerID(owner.account), ids: [first, second], keptSince: Self.now), rows: 8),
                Probe(
                    KeepVersions(
                        owner: OwnerID(owner.account), ids: [first, second], now: Self.now, expiresAt: Self.now),
                    rows: 10),
                Probe(CountVersions(owner: OwnerID(owner.account), count: 1, bytes: 1), rows: 2),
                Probe(
                    DropVersions(owner: OwnerID(owner.account), wanted: NeededRoom(items: 64, bytes: 64)),
                    rows: 4 * Int(ItemVersion.dropLimit)),
                read(FindVersions(page: .first(of: first), now: Self.now, limit: 101), rows: 101),
                read(FindVersion(id: first, revision: 10, now: Self.now), rows: 1),
                read(HasItem(id: first), rows: 1),
                write(restoration, rows: 10),
                Probe(StoreRestored(restoration: restoration, owner: OwnerID(owner.account), now: Self.now), rows: 4),
            ]
        }
    }

    private var sync: [Probe] {
        get async throws {
            let operations = try [1, 2, 3, 11, 12].map { number in
                BatchOperation(
                    id: try owner.item(number), ifRevision: nil,
                    content: number % 2 == 0
                        ? nil
                        : ItemContent(
                            format: .opaque, collection: .standard, iterations: nil, title: nil, body: try Self.sealed))
            }
            let puts = try #require(Puts(operations.filter { $0.content != nil }))
            // No more than the revisions that every account has.
            let put = try #require(Puts([operations[0]]))
            var staged: [StagedItem] = []
            for number in [21, 22, 23] {
                staged.append(
                    try await StagedItem(
                        json: RotationClient.staged(
                            "\(try owner.item(number))", Int64(number), Fixtures.passwordKey("sealed")),
                        formats: SealedFormat.allCases, pace: .yielding))
            }
            let batch = StageBatch(id: try owner.rotation(), items: staged)
            let ids = [try owner.item(1), try owner.item(2)]
            var query = FindMovedRevisions.Query()
            query.append(SessionKey(accountID: owner.account, tokenHash: owner.tokenHash), revision: 0)
            let rare = ChangeRange(
                since: nil, collection: CollectionName("rare"), limit: 100, listsAllTombstones: false)
            return [
                write(ApplyBatch(operations: operations), rows: 40),
                write(MeasurePuts(puts: puts), rows: 8),
                Probe(
                    CountPuts(
                        owner: OwnerID(owner.account),
                        effect: CountPuts.Effect(changes: 1, moreItems: 0, moreBytes: 0, fewerTombstones: 0)),
                    rows: 2),
                Probe(WritePuts(owner: OwnerID(owner.account), puts: put, now: Self.now), rows: 3),
                read(
                    FindChanges(
                        range: ChangeRange(
                            since: SyncCursor(revision: 0, floor: 0), limit: 100, listsAllTombstones: true),
                        byteLimit: 1 << 22), rows: 102),
                read(
                    FindChanges(
                        range: ChangeRange(since: nil, limit: 100, listsAllTombstones: true), byteLimit: 1 << 22),
                    rows: 102),
                read(
                    FindChanges(
                        range: ChangeRange(
                            since: SyncCursor(revision: 19_990, floor: 19_990), limit: 100, listsAllTombstones: true),
                        byteLimit: 1 << 22), rows: 102),
                read(
                    FindChangeHeaders(range: ChangeRange(since: nil, limit: 100, listsAllTombstones: true)),
                    rows: 102),
                read(FindChanges(range: rare, byteLimit: 1 << 22), rows: 2 * Int(ChangeRange.walkSize) + 1),
                read(FindChangeHeaders(range: rare), rows: 2 * Int(ChangeRange.walkSize) + 1),
                read(FindRevision(), rows: 1),
                // With statistics of a time when accounts had one session it walks the account's sessions, which its plan
                // limits.
                Probe(FindMovedRevisions(query: query, now: Self.now, idleSince: caller.idleSince), rows: 50),
                write(batch, rows: 20),
                Probe(StoreStaged(batch: batch, accountID: owner.account), rows: 20),
                Probe(ArchiveContents(owner: OwnerID(owner.account), ids: ids, expiresAt: Self.now), rows: 10),
                Probe(
                    WriteTombstones(owner: OwnerID(owner.account), ids: ids, revisions: [1, 2], now: Self.now), rows: 4),
                read(FindRotation(id: try owner.rotation(), now: Self.now), rows: 2),
                Probe(FindRotations(accountID: owner.account), rows: 1),
            ]
        }
    }

    /// The plan bounds an account's sessions: here they are 100. Of each kind of event there are a hundred, too.
    private var sessions: [Probe] {
        get throws {
            let subject = AttemptSubject(SHA256.hash(Array("subject \(owner.account)".utf8)))
            let counter = AttemptCounter(
                subject: subject, place: AttemptPlace(SHA256.hash(Array("1".utf8))))
            let session = NewSession(accountID: owner.account, now: Self.now, policy: SessionPolicy())
            let opening = OpenSession(
                accountID: owner.account, tokenHash: session.token.hash, sessionID: session.id, deviceName: nil,
                now: Self.now, idleSince: caller.idleSince, expiresAt: session.expiresAt, isPermitted: true,
                credentialRevision: 1)
            let surplus = FindSurplusSessions(
                accountID: owner.account, now: Self.now, idleSince: caller.idleSince, tokenHash: session.token.hash,
                otherSessions: 99)
            let trimming = TrimSessions(
                accountID: owner.account, now: Self.now, idleSince: caller.idleSince, tokenHashes: [owner.tokenHash])
            let trimmingMany = TrimSessions(
                accountID: owner.account, now: Self.now, idleSince: caller.idleSince,
                tokenHashes: (1...25).map(owner.session))
            return [
                Probe(FindLogin(userid: owner.userid), rows: 1),
                Probe(FindKDFParameters(userid: owner.userid, slot: 1), rows: 2),
                // A userid has eighteen counters at most.
                Probe(FindFailedAttempts(subject: subject, places: [counter.place, .stranger]), rows: 18),
                Probe(ReserveAttempt(counter: counter, now: Self.now), rows: 1),
                Probe(
                    RecordFailedAttempt(counter: counter, kind: .passwordKey, now: Self.now, isReserved: false),
                    rows: 1),
                Probe(RemoveFailedAttempts(counter: counter), rows: 1),
                Probe(opening, rows: 5),
                Probe(StoreSession(opening: opening), rows: 5),
                Probe(
                    CountSessions(accountID: owner.account, now: Self.now, idleSince: caller.idleSince), rows: 210),
                Probe(surplus, rows: 310),
                // With statistics of a time when accounts had one session and two events, both walk the account's sessions
                // (100) and compare its events (200) with each one that ends: sessions + ended sessions × events, and of the
                // removal two walks over the events of the kind. The plan and ``SecurityEventLimit`` bound these.
                Probe(RecordSessionEnds(removal: trimming), rows: 310),
                Probe(trimming, rows: 510),
                Probe(RecordSessionEnds(removal: trimmingMany), rows: 100 + 25 * 200),
                Probe(trimmingMany, rows: 510),
                read(
                    FindSessions(tokenHash: owner.tokenHash, now: Self.now, idleSince: caller.idleSince), rows: 100),
                write(RecordCallersSessionEnds(removal: RemoveSession(id: SessionID.random())), rows: 110),
                write(RemoveSession(id: SessionID.random()), rows: 310),
                write(RecordCallersSessionEnds(removal: RemoveCurrentSession()), rows: 10),
                write(RemoveCurrentSession(isDropDue: true), rows: 210),
                write(RemoveCurrentSession(isDropDue: false), rows: 10),
                read(FindAccount(now: Self.now, idleSince: caller.idleSince), rows: 420),
                read(FindUserid(), rows: 1),
                Probe(FindAnySession(caller: caller), rows: 2),
                Probe(FindCredentialRevision(caller: caller), rows: 2),
                Probe(LockAccountWholly(accountID: owner.account), rows: 1),
            ]
        }
    }

    private var shares: [Probe] {
        get async throws {
            let id = try owner.share()
            let content = try await JSONMembers.read(ShareFixtures.content(), pace: .yielding) {
                try await ShareContent(&$0, now: Self.now, pace: .yielding)
            }
            let admission = AdmitShare(byteCount: 10)
            return [
                Probe(TakeView(id: id, now: Self.now), rows: 1),
                Probe(CountViewsLeft(id: id, now: Self.now), rows: 1),
                Probe(FindManagedShare(id: id, now: Self.now, manageHash: owner.tokenHash), rows: 1),
                Probe(UpdateShare(id: id, now: Self.now, manager: .owner(owner.account), content: content), rows: 1),
                Probe(RemoveShare(id: id, now: Self.now, manager: .owner(owner.account)), rows: 1),
                write(admission, rows: 210),
                Probe(
                    InsertAccountShare(
                        admission: admission, accountID: owner.account, id: ShareID.random(), now: Self.now,
                        expiresAt: nil), rows: 3),
                Probe(
                    InsertShare(
                        account: owner.account, id: try owner.share(0), manageHash: owner.tokenHash, content: content,
                        now: Self.now),
                    rows: 1),
                read(FindAccountShares(position: .first, now: Self.now, limit: 101), rows: 101),
                Probe(FindShareHeaders(ids: [id], now: Self.now, owner: owner.account), rows: 1),
                Probe(LockShareOwner(accountID: owner.account), rows: 2),
                Probe(UpdateAccountShare(accountID: owner.account, id: id, expiresAt: Self.now), rows: 1),
                Probe(RemoveAccountShares(accountID: owner.account, ids: [id]), rows: 101),
            ]
        }
    }

    private var rest: [Probe] {
        get throws {
            let receipt = WriteReceipt(receipt: try Receipt(json: "receipt"))
            let event = RecordSecurityEvent(accountID: owner.account, kind: .exported, now: Self.now)
            return [
                read(FindKeyring(), rows: 1),
                read(FindReplaceableKeyrings(now: Self.now), rows: 7),
                read(FindKeptKeyrings(now: Self.now), rows: 4),
                Probe(FindExpiredKeyrings(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindDueKeyrings(moment: Self.now, limit: 100), rows: 100),
                write(
                    WriteKeyring(
                        precondition: .absent, keyring: try Keyring(json: .string(Fixtures.sealed())),
                        coversRecovery: true), rows: 5),
                write(receipt, rows: 4),
                Probe(StoreReceipt(write: receipt, accountID: owner.account, now: Self.now), rows: 3),
                read(FindSecurityLog(position: .newest, limit: 51), rows: 151),
                Probe(event, rows: 3),
                Probe(DropOldEvents(after: event), rows: 202),
                Probe(LockAccount(accountID: owner.account), rows: 1),
                Probe(FindOldTombstones(before: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindExpiredContents(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindExpiredVersions(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(
                    RemoveVersions(
                        accountID: owner.account, now: Self.now,
                        keys: [VersionKey(item: try owner.item(1), revision: 10)]), rows: 2),
                Probe(FindExpiredKeyrings(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindDueKeyrings(moment: Self.now, limit: 100), rows: 100),
                Probe(RemoveExpiredKeyrings(accountID: owner.account, now: Self.now, ids: [.random()]), rows: 5),
                read(FindReplaceableKeyrings(now: Self.now), rows: 7),
                read(FindKeptKeyrings(now: Self.now), rows: 5),
                Probe(DropKeptKeyrings(accountID: owner.account, now: Self.now, dropsProven: true), rows: 10),
                Probe(RemoveKeptKeyring(accountID: owner.account, id: .random()), rows: 5),
                Probe(RemoveKeptKeyrings(accountID: owner.account), rows: 10),
                Probe(RemoveKeptRecoveryKeyrings(accountID: owner.account), rows: 20),
                Probe(FindDueVersions(moment: Self.now, limit: 100), rows: 100),
                Probe(FindExpiredRotations(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindEndedShares(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindDueTombstones(moment: Self.now, limit: 100), rows: 100),
                Probe(FindDueContents(moment: Self.now, limit: 100), rows: 100),
                Probe(FindDueRotations(moment: Self.now, limit: 100), rows: 100),
                Probe(FindDueEvents(moment: Self.now, limit: 100), rows: 100),
                Probe(FindDueAttempts(moment: Self.now, limit: 100), rows: 100),
                Probe(FindDueShares(moment: Self.now, limit: 100), rows: 100),
                Probe(
                    FindEndedSessions(after: nil, now: Self.now, idleSince: caller.idleSince, limit: 100), rows: 100),
            ]
        }
    }
}
