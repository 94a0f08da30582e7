internal import Foundation

extension Vault {
    /// Syncs now and after each change on the server or here, until the task is cancelled or the session ends. While
    /// the server is unreachable, attempts are repeated after waits that double.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: Permanent errors, such as another key or an untrusted certificate.
    public func keepInSync() async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let former = opened?.token
            do throws(VaultError) {
                try await follow { failures = 0 }
            } catch .unavailable(let error) where !error.isAboutTrust || Task.isCancelled {
                if Task.isCancelled { return }
                failures += 1
                let wait = settings.retries.wait(after: failures, asked: error.retryAfter, chance: .random(in: 0...1))
                session.note(.failed(.unavailable(error), next: Date() + wait / .seconds(1)))
                try? await Task.sleep(for: wait)
            } catch {
                // A new session has replaced the one that has ended.
                if case .sessionEnded = error, let token = opened?.token, token != former { continue }
                session.note(.failed(error, next: nil))
                throw error
            }
        }
    }

    /// The number of times that the vault was opened.
    var openings: Int { session.openings }

    /// Waits until the vault is opened again, by a password or by a new session.
    /// - Parameter seen: The number of ``openings`` so far.
    /// - Returns: False when the vault is signed out or the task is cancelled.
    func waitForOpening(after seen: Int) async -> Bool {
        for await openings in observers.openings.add(keeping: 1, beginningWith: session.openings) where openings != seen
        {
            return true
        }
        return false
    }

    /// Syncs at each edit and at each stream event with new changes. The stream's first event arrives immediately, so
    /// no change between a sync and the opening of the stream is missed. Changes by the sync itself do not count.
    private func follow(onSuccess: () -> Void) async throws(VaultError) {
        let token = try open.token
        let api = self.api
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let end = FollowingEnd()
        let edits = observers.edits.add()
        let news = FollowedChanges()
        try await sync()
        onSuccess()
        await withTaskGroup { group in
            group.addTask {
                let error = await Self.events(api, token) {
                    news.add($0)
                    continuation.yield()
                }
                end.set(VaultError(error))
                continuation.finish()
            }
            group.addTask {
                for await _ in edits {
                    news.add(nil)
                    continuation.yield()
                }
            }
            for await _ in nudges {
                do throws(VaultError) {
                    if try isNews(news.take()) { try await sync() }
                } catch {
                    end.set(error)
                    break
                }
            }
            group.cancelAll()
        }
        if Task.isCancelled { return }
        throw end.error
    }

    private func isNews(_ reports: [Int64?]) throws(VaultError) -> Bool {
        let engine = try self.engine
        // Each event is recorded.
        return reports.filter { report in report.map { engine.horizon.isNews($0) } ?? true }.isEmpty == false
    }

    /// Reports possible changes on the server, until the task is cancelled or the session ends. It does not use the
    /// store. While the server is unreachable, attempts are repeated after waits that double.
    /// - Throws: The errors of ``keepInSync()``.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let hasChanged = Locked(false)
            let error = VaultError(
                await Self.events(api, try open.token) { _ in
                    hasChanged.withLock { $0 = true }
                    onChange()
                })
            if Task.isCancelled { return }
            guard case .unavailable(let cause) = error, !cause.isAboutTrust else { throw error }
            failures = hasChanged.withLock(\.self) ? 1 : failures + 1
            let wait = settings.retries.wait(after: failures, asked: cause.retryAfter, chance: .random(in: 0...1))
            try? await Task.sleep(for: wait)
        }
    }

    /// Reads the events of one stream.
    /// - Parameter onChange: Receives the account's revision; nil for an event without one.
    /// - Returns: The reason for which the stream has ended.
    private static func events(_ api: SalternAPI, _ token: Token, _ onChange: (Int64?) -> Void) async -> APIError {
        let events: ServerSentEvents
        do throws(APIError) { events = try await api.streamChanges(token) } catch { return error }
        var iterator = events.makeAsyncIterator()
        var pace = EventPace(at: .now)
        do throws(TransportError) {
            while let event = try await iterator.next() {
                guard event.name == "change" else { continue }
                onChange(event.id.flatMap { Int64($0) })
                try? await Task.sleep(for: pace.wait(at: .now))
            }
            return .transport(.connectionLost)
        } catch {
            return .transport(error)
        }
    }
}

/// The reason for which following has ended.
private final class FollowingEnd: Sendable {
    private let reason = Locked(VaultError.unavailable(.transport(.connectionLost)))

    var error: VaultError { reason.withLock { $0 } }

    func set(_ error: VaultError) { reason.withLock { $0 = error } }
}

/// The events since the start of the last sync.
private final class FollowedChanges: Sendable {
    /// The last revision that the server has reported, and true after an edit or a report without a revision.
    private let reports = Locked<(revision: Int64?, hasOthers: Bool)>((nil, false))

    func add(_ revision: Int64?) {
        reports.withLock { if let revision { $0.revision = revision } else { $0.hasOthers = true } }
    }

    func take() -> [Int64?] {
        reports.withLock { reports in
            defer { reports = (nil, false) }
            return (reports.revision.map { [$0] } ?? []) + (reports.hasOthers ? [nil] : [])
        }
    }
}
