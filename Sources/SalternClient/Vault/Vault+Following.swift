internal import Foundation

extension Vault {
    /// Syncs now and whenever something changes on the server or here, until the task is cancelled or the session ends.
    /// While the server is away it is asked again after waits that double.
    ///
    /// Example: "Sync and offline" in docs/app.md.
    /// - Throws: Also what time does not mend: another key, an untrusted certificate.
    public func keepInSync() async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            do throws(VaultError) {
                try await follow { failures = 0 }
            } catch .unavailable(let error) where !error.isAboutTrust || Task.isCancelled {
                if Task.isCancelled { return }
                failures += 1
                let wait = settings.retries.wait(after: failures, asked: error.retryAfter, chance: .random(in: 0...1))
                note(.failed(.unavailable(error), next: Date() + wait / .seconds(1)))
                try? await Task.sleep(for: wait)
            } catch {
                note(.failed(error, next: nil))
                throw error
            }
        }
    }

    /// Syncs at every event of one stream, the first of which comes at once: so nothing that happens between a sync and the
    /// opening of the stream is missed.
    private func follow(onSuccess: () -> Void) async throws(VaultError) {
        let token = try open.token
        let api = self.api
        let (nudges, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let end = FollowingEnd()
        let local = changes()
        try await sync()
        onSuccess()
        await withTaskGroup { group in
            group.addTask {
                let error = await Self.events(api, token) { continuation.yield() }
                end.set(VaultError(error))
                continuation.finish()
            }
            group.addTask { for await _ in local { continuation.yield() } }
            for await _ in nudges {
                do throws(VaultError) {
                    try await sync()
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

    /// Reports that something may have changed on the server, until the task is cancelled or the session ends. It does not
    /// use the store. While the server is away it is asked again after waits that double.
    /// - Throws: As ``keepInSync()`` does.
    func listen(_ onChange: @Sendable () -> Void) async throws(VaultError) {
        var failures = 0
        while !Task.isCancelled {
            let hasHeard = Locked(false)
            let error = VaultError(
                await Self.events(api, try open.token) {
                    hasHeard.withLock { $0 = true }
                    onChange()
                })
            if Task.isCancelled { return }
            guard case .unavailable(let cause) = error, !cause.isAboutTrust else { throw error }
            failures = hasHeard.withLock(\.self) ? 1 : failures + 1
            let wait = settings.retries.wait(after: failures, asked: cause.retryAfter, chance: .random(in: 0...1))
            try? await Task.sleep(for: wait)
        }
    }

    /// - Returns: Why there are no more events.
    private static func events(_ api: SalternAPI, _ token: Token, _ onChange: () -> Void) async -> APIError {
        let events: ServerSentEvents
        do throws(APIError) { events = try await api.streamChanges(token) } catch { return error }
        var iterator = events.makeAsyncIterator()
        var pace = EventPace(at: .now)
        do throws(TransportError) {
            while let event = try await iterator.next() {
                guard event.name == "change" else { continue }
                onChange()
                try? await Task.sleep(for: pace.wait(at: .now))
            }
            return .transport(.connectionLost)
        } catch {
            return .transport(error)
        }
    }
}

/// Why following has ended.
private final class FollowingEnd: Sendable {
    private let reason = Locked(VaultError.unavailable(.transport(.connectionLost)))

    var error: VaultError { reason.withLock { $0 } }

    func set(_ error: VaultError) { reason.withLock { $0 = error } }
}
