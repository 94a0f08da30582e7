import EventLoop
import Synchronization
import Testing

@testable import Postgres

/// What was told to whoever made an entry, to be compared with what is there in the end.
final class GroupLedger: Sendable {
    /// What goes wrong with an entry: an SQLSTATE whenever it is made, at the end of its transaction, or only as long as
    /// it shares a connection.
    enum Fault: String, CaseIterable, Sendable {
        case none = ""
        case division = "22012"
        case diskFull = "53100"
        case late = "late"
        case lock = "55P03"
        case deadlock = "40P01"
        case serialization = "40001"

        /// What everybody has to be told who makes such an entry, whatever his neighbours do.
        var error: SQLState? {
            switch self {
            case .none, .lock, .deadlock, .serialization: nil
            case .division: .divisionByZero
            case .diskFull, .late: .diskFull
            }
        }
    }

    static let schema = """
        CREATE TABLE public.tallies (id integer PRIMARY KEY, value integer NOT NULL);
        INSERT INTO public.tallies SELECT number, 0 FROM generate_series(0, 399) AS number;
        CREATE TABLE public.entries (
            number bigint PRIMARY KEY, id integer NOT NULL, fault text NOT NULL,
            transaction bigint NOT NULL DEFAULT pg_current_xact_id()::text::bigint);
        CREATE FUNCTION public.fail() RETURNS trigger LANGUAGE plpgsql AS $$
            BEGIN
                IF NEW.fault = 'late' THEN RAISE EXCEPTION 'made' USING ERRCODE = '53100'; END IF;
                IF NEW.fault NOT IN ('55P03', '40P01', '40001') OR current_setting('lock_timeout') = '5ms' THEN
                    RAISE EXCEPTION 'made' USING ERRCODE = NEW.fault;
                END IF;
                RETURN NEW;
            END $$;
        CREATE TRIGGER fails BEFORE INSERT ON public.entries FOR EACH ROW
            WHEN (NEW.fault NOT IN ('', 'late')) EXECUTE FUNCTION public.fail();
        CREATE CONSTRAINT TRIGGER fails_late AFTER INSERT ON public.entries DEFERRABLE INITIALLY DEFERRED
            FOR EACH ROW WHEN (NEW.fault = 'late') EXECUTE FUNCTION public.fail();
        """

    struct LockTally: Statement {
        typealias Row = Int32
        let id: Int32
        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = "SELECT value FROM public.tallies WHERE id = \(\.id) FOR NO KEY UPDATE"
    }

    struct AddEntry: Statement {
        typealias Row = Int32
        let number: Int64
        let id: Int32
        let fault: String
        var bytesInGroup: Int? { 100 }
        static let sql: SQL<Self> = """
            WITH added AS (
                INSERT INTO public.entries (number, id, fault) VALUES (\(\.number), \(\.id), \(\.fault)) RETURNING id)
            UPDATE public.tallies t SET value = t.value + 1 FROM added WHERE t.id = added.id RETURNING t.value
            """
    }

    struct FindEntries: Statement {
        static let isReadOnly = true
        static let sql: SQL<Self> = "SELECT number, transaction FROM public.entries"
        struct Row: Sendable {
            let number: Int64
            let transaction: Int64
        }
        static func decode(_ row: inout RowReader) throws(PostgresError) -> Row {
            Row(number: try row.next(), transaction: try row.next())
        }
    }

    struct WrongTallies: Statement {
        typealias Row = Int32
        static let isReadOnly = true
        static let sql: SQL<Self> = """
            SELECT t.id FROM public.tallies t
            WHERE t.value <> (SELECT count(*) FROM public.entries e WHERE e.id = t.id)
            """
    }

    /// What somebody was told.
    private enum Word {
        case done, notDone
        /// Nobody can know.
        case inDoubt
    }

    private let words = Mutex<[Int64: Word]>([:])

    /// Makes an entry and notes what came of it.
    /// - Parameter losesConnections: Whether connections are cut meanwhile.
    func enter(_ client: PostgresClient, id: Int32, _ fault: Fault, losesConnections: Bool) async {
        let number = words.withLock { words in
            let number = Int64(words.count)
            words[number] = .inDoubt
            return number
        }
        do {
            let (before, after) = try await client.execute(
                LockTally(id: id), AddEntry(number: number, id: id, fault: fault.rawValue), key: GroupTests.key(id))
            note(number, .done)
            #expect(fault.error == nil && after.first == before.first.map { $0 + 1 })
        } catch {
            switch error {
            case .cancelled: #expect(Task.isCancelled)
            case .connectionLost, .timedOut: #expect(losesConnections, "\(error)")
            case .unavailable:
                note(number, .notDone)
                #expect(losesConnections, "\(error)")
            default:
                note(number, .notDone)
                #expect(error.sqlState != nil && error.sqlState == fault.error, "\(fault): \(error)")
            }
        }
    }

    private func note(_ number: Int64, _ word: Word) { words.withLock { $0[number] = word } }

    /// Compares with what is there. Nothing may be under way any more.
    func check(_ client: PostgresClient) async throws {
        let entries = try await client.execute(FindEntries())
        let present = Set(entries.map(\.number))
        let words = words.withLock { $0 }
        #expect(words.filter { $0.value == .done && !present.contains($0.key) }.isEmpty, "told to be done")
        #expect(words.filter { $0.value == .notDone && present.contains($0.key) }.isEmpty, "told not to be done")
        #expect(try await client.execute(WrongTallies()) == [])
        let sizes = Dictionary(grouping: entries, by: \.transaction).mapValues(\.count)
        #expect(sizes.values.contains { $0 > 1 }, "some shared a transaction")
    }
}
