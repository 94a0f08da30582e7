internal import HTTPCore
internal import Postgres
internal import Synchronization
internal import VaultLog

/// The logs of vaults in memory, one of each vault. All loops of a node share them.
///
/// Entries never change, so a stored head proves a log in memory. Only the entries behind it are read and checked.
final class LogCache: Sendable {
    /// Maximum memory in bytes, as estimated.
    static let standardLimit = 32 << 20

    private struct Place {
        let log: MembershipLog
        let size: Int
        var use: UInt64
    }

    private struct State {
        var logs: [VaultID: Place] = [:]
        var size = 0
        var use: UInt64 = 0
    }

    private let limit: Int
    private let state = Mutex(State())

    init(limit: Int = standardLimit) { self.limit = limit }

    /// The estimated bytes of all logs.
    var size: Int { state.withLock(\.size) }

    /// Returns the log of a vault as of an earlier request.
    func log(of vaultID: VaultID) -> MembershipLog? {
        state.withLock { state in
            state.use += 1
            state.logs[vaultID]?.use = state.use
            return state.logs[vaultID]?.log
        }
    }

    /// Stores a log whose entries are in the database, and removes those that were not used for the longest time.
    func insert(_ log: MembershipLog, of vaultID: VaultID) {
        let size = Self.size(of: log)
        state.withLock { state in
            state.size -= state.logs.removeValue(forKey: vaultID)?.size ?? 0
            guard size <= limit else { return }
            while state.size + size > limit, let oldest = state.logs.min(by: { $0.value.use < $1.value.use }) {
                state.size -= oldest.value.size
                state.logs[oldest.key] = nil
            }
            state.use += 1
            state.logs[vaultID] = Place(log: log, size: size, use: state.use)
            state.size += size
        }
    }

    /// Estimates the memory of a log: keys that OpenSSL has read are the largest part.
    private static func size(of log: MembershipLog) -> Int {
        1_024 + log.hashes.count * 96 + log.members.count * 4_096 + log.invitations.count * 384
            + log.generations.count * 160
    }

    /// Reads the log of a vault up to a head.
    ///
    /// - Parameters:
    ///   - pace: Suspends between slices of entries.
    ///   - find: Reads entries.
    func read(
        _ vaultID: VaultID, upTo head: StoredHead, pace: Pace, _ find: (FindEntries) async throws -> [[UInt8]]
    ) async throws -> MembershipLog {
        if let known = log(of: vaultID), known.head.number.value <= UInt64(clamping: head.number) {
            if head.isHead(of: known) { return known }
            if let log = try await Self.extend(known, of: vaultID, upTo: head, pace: pace, find) {
                insert(log, of: vaultID)
                return log
            }
        }
        // Only valid entries are stored.
        guard let log = try await Self.extend(nil, of: vaultID, upTo: head, pace: pace, find) else {
            throw Problem.internalError
        }
        insert(log, of: vaultID)
        return log
    }

    /// The number of entries that are read and checked without a suspension.
    private static let slice: Int64 = 64

    /// Appends the entries behind a log. Returns nil if they do not lead to the head: a restore or the owner has
    /// replaced entries.
    static func extend(
        _ log: MembershipLog?, of vaultID: VaultID, upTo head: StoredHead, pace: Pace,
        _ find: (FindEntries) async throws -> [[UInt8]]
    ) async throws -> MembershipLog? {
        var log = log
        var last = Int64(log?.head.number.value ?? 0)
        while last < head.number {
            let bytes = try await find(
                FindEntries(vaultID: vaultID, after: last, limit: min(slice, head.number - last)))
            if bytes.isEmpty { return nil }
            for bytes in bytes {
                guard let entry = try? Entry(bytes), append(entry, to: &log) else { return nil }
            }
            last += Int64(bytes.count)
            if last < head.number { await pace.giveWay() }
        }
        return log.flatMap { head.isHead(of: $0) ? $0 : nil }
    }

    private static func append(_ entry: Entry, to log: inout MembershipLog?) -> Bool {
        do throws(EntryRejection) {
            if log == nil {
                log = try MembershipLog(founding: entry)
            } else {
                try log?.append(verified: entry)
            }
            return true
        } catch {
            return false
        }
    }
}

/// The latest entry of a vault's log as the database has it.
struct StoredHead: Sendable {
    let number: Int64
    let hash: [UInt8]

    func isHead(of log: MembershipLog) -> Bool {
        log.head.number.value == UInt64(clamping: number) && log.head.hash.bytes == hash
    }
}
