import Cryptography
import Postgres
import SalternTesting
import Testing

@testable import SalternServer

/// The statements about an account's passkeys and outgoing events. There are two destinations.
///
/// The ordered queue of the large account has 399 parked events and 34 waiting ones at each destination.
struct HotEventStatements {
    private typealias Probe = HotStatements.Probe

    private let owner: SkewedDatabase.Owner
    private let account: AccountID
    private let caller: Caller
    private let key: EventQueueKey

    private static let now = HotStatements.now
    /// A month before everything was made.
    private static let earlier = now - .seconds(31 * 86_400)

    init(_ owner: SkewedDatabase.Owner, _ caller: Caller) throws {
        self.owner = owner
        account = owner.account
        self.caller = caller
        key = try owner.queue()
    }

    var probes: [HotStatements.Probe] { get throws { try passkeys + outbox + delivery + purge } }

    private var passkeys: [Probe] {
        get throws {
            let id = try owner.passkey()
            let hashes = (1...100).map { PasskeyChallengeHash(SHA256.hash(Array("challenge \(account) \($0)".utf8))) }
            return [
                Probe(Owned(accountID: account, read: FindPasskeys()), rows: 20),
                Probe(Owned(accountID: account, read: FindPasskeyIDs()), rows: 20),
                Probe(Owned(accountID: account, read: FindUsablePasskey(id: id)), rows: 1),
                Probe(FindPasskeyLogIn(accountID: account, id: id), rows: 2),
                Probe(DeletePasskey(accountID: account, id: id), rows: 1),
                Probe(RemoveUnlockBox(accountID: account, id: id), rows: 1),
                // Challenges of the last minutes: an account has at most 200.
                Probe(CountUsedChallenges(accountID: account, now: Self.now), rows: 200),
                Probe(ForgetExpiredChallenges(accountID: account, now: Self.now), rows: 200),
                Probe(RemoveExpiredChallenges(accountID: account, now: Self.now, hashes: hashes), rows: 200),
                Probe(FindExpiredChallenges(now: Self.now, except: [], limit: 100), rows: 100),
                Probe(FindDueChallenges(moment: Self.now, limit: 100), rows: 100),
            ]
        }
    }

    private var outbox: [Probe] {
        let receipt = ReportedEvent(accountID: account, kind: .receiptStored, now: Self.now)
        let created = ReportedEvent(accountID: account, kind: .accountCreated, now: Self.now)
        let removal = RemoveAllSessions(accountID: account, exception: owner.tokenHash, now: Self.now)
        let opened = QueueOpenedSession(accountID: account, sessionID: .random(), now: Self.now)
        let change = QueueChange(accountID: account, destinationID: key.destinationID, now: Self.now)
        let ends = QueueEnds(removal: removal)
        let others = QueueCallersEnds(removal: RemoveOtherSessions())
        return [
            // It looks for a waiting receipt at each destination.
            Probe(QueueAccountEvent(event: receipt), rows: 880),
            Probe(QueueAccountEvent(event: created), rows: 6),
            Probe(StoreAccountEvent(event: receipt), rows: 70),
            Probe(EndQueues(accountID: account), rows: 70),
            Probe(RemoveIdleQueues(accountID: account), rows: 70),
            Probe(opened, rows: 270),
            Probe(StoreOpenedSession(queue: opened), rows: 170),
            // 99 sessions at two destinations with 32 queues each.
            Probe(ends, rows: 100 + 99 * 2 * 33),
            Probe(StoreEnds(queue: ends), rows: 170),
            Probe(Guarded(caller: caller, write: others), rows: 100 + 99 * 2 * 33),
            Probe(Guarded(caller: caller, write: StoreCallersEnds(queue: others)), rows: 171),
            Probe(change, rows: 1),
            Probe(StoreChange(queue: change), rows: 4),
        ]
    }

    /// Each statement may pass the parked events of its own queue.
    private var delivery: [Probe] {
        get throws {
            let lease = EventLease(key: key, id: .random())
            let destination = key.destinationID
            let lane = key.lane
            let ids = try (1...100).map {
                try owner.uuid("event \(account)\(destination)\(lane)\($0)")
            }
            return [
                Probe(FindDueQueues(destinationID: destination, now: Self.now), rows: 1_120),
                Probe(LockQueue(key: key), rows: 1),
                Probe(
                    LeaseQueue(lease: lease, seen: Self.now, until: Self.now, limit: EventLease.eventLimit), rows: 434),
                Probe(FindLeasedEvents(lease: lease, limit: EventLease.eventLimit), rows: 470),
                Probe(RemoveDelivered(key: key, number: 1), rows: 1),
                Probe(ExtendLease(lease: lease, until: Self.now), rows: 1),
                Probe(EndLease(lease: lease, deliveredNumber: 0, now: Self.now), rows: 1),
                Probe(DelayQueue(lease: lease, attempts: 1, dueAt: Self.now), rows: 1),
                Probe(ParkEvent(key: key, number: 1, now: Self.now), rows: 1),
                Probe(SettleQueue(key: key, now: Self.now), rows: 870),
                Probe(RemoveEndedQueue(key: key), rows: 1),
                Probe(TakeDroppedEvents(key: key), rows: 1),
                Probe(FindEventsByID(destinationID: destination, ids: ids), rows: 100),
                Probe(RemoveConfirmed(key: key, numbers: [1, 2, 3]), rows: 433),
                Probe(FindWaitingEvents(destinationID: destination, limit: 1_000), rows: 1_000),
                Probe(FindParkedEvents(destinationID: try owner.destination("second"), limit: 1_000), rows: 1_000),
            ]
        }
    }

    /// Searches of all accounts read an index by time once in a run, also where no row is due.
    private var purge: [Probe] {
        [
            Probe(FindOverdueEvents(before: Self.earlier, except: [], limit: 100), rows: 10),
            Probe(FindOverdueEvents(before: Self.now, except: [], limit: 100), rows: 100),
            Probe(FindExpiredEvents(before: Self.earlier, except: [], limit: 100), rows: 10),
            Probe(FindExpiredEvents(before: Self.now, except: [], limit: 100), rows: 100),
            Probe(FindIdleQueues(before: Self.earlier, except: [], limit: 100), rows: 10),
            Probe(LockQueues(accounts: [account]), rows: 70),
            Probe(ParkOverdueEvents(accounts: [account], before: Self.now, now: Self.now), rows: 940),
            Probe(RemoveExpiredEvents(accounts: [account], before: Self.now), rows: 940),
            Probe(RemoveEndedQueues(accounts: [account]), rows: 70),
        ]
    }
}
