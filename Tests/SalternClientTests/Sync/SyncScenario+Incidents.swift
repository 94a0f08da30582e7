import SalternClient
import Synchronization
import SalternTesting
import Testing

/// What goes wrong in a scenario.
extension SyncScenario {
    /// How often something went wrong: a test in which nothing does proves nothing.
    struct Incidents {
        var kills = 0
        var failures = 0
        var restarts = 0
        var follows = 0
        var cuts = 0
        var rotations = 0

        mutating func add(_ other: Self) {
            kills += other.kills
            failures += other.failures
            restarts += other.restarts
            follows += other.follows
            cuts += other.cuts
            rotations += other.rotations
        }

        var hasEverything: Bool { [kills, failures, restarts, follows, cuts, rotations].allSatisfy { $0 > 0 } }
    }

    /// A sync within which something is done, when it is not over before.
    func interruptSync(
        _ vault: Vault, _ link: LossyTransport, _ body: @escaping @Sendable () async throws -> Void
    ) async throws {
        let failure = Mutex<(any Error)?>(nil)
        link.interrupt(
            LossyTransport.Interruption(exchange: Int.random(in: 0..<3, using: &random), moment: randomMoment()) {
                do { try await body() } catch { failure.withLock { $0 = error } }
            })
        if random.chance(oneIn: 2) { link.setBadFates(random.next()) }
        var end: (any Error)?
        do { try await syncOrFail(vault, link) } catch { end = error }
        await link.endInterruption()?.body()
        if let error = failure.withLock({ $0 }) ?? end { throw error }
    }

    /// A sync during which something goes wrong, or nothing.
    func syncBadly(_ vault: Vault, _ link: LossyTransport) async throws {
        if random.chance(oneIn: 2) { link.setBadFates(random.next()) }
        let exchange = Int.random(in: 0..<4, using: &random)
        if random.chance(oneIn: 5) {
            link.interrupt(
                LossyTransport.Interruption(exchange: exchange, moment: randomMoment()) {
                    withUnsafeCurrentTask { $0?.cancel() }
                })
        } else if random.chance(oneIn: 50) {
            let restart = restart(patience: random.chance(oneIn: 2) ? .seconds(1) : .milliseconds(1))
            link.interrupt(LossyTransport.Interruption(exchange: exchange, moment: randomMoment(), body: restart))
        }
        if random.chance(oneIn: 24) { link.expireCursor() }
        do { try await syncOrFail(vault, link) } catch VaultError.store where hasFault(link) {
            // Nobody was told that anything was done.
        }
        _ = link.endInterruption()
    }

    /// The data keys are changed, and something goes wrong meanwhile, or nothing. The other devices have to log in again.
    func rotateBadly(_ vault: Vault, _ link: LossyTransport) async throws {
        if random.chance(oneIn: 2) { link.setBadFates(random.next(), areLate: false) }
        defer { link.setFate { .passes } }
        do {
            do { try await vault.rotateKeys(password: person.password) } catch VaultError.sessionEnded {
                try await vault.logInAgain(password: person.password)
                try await vault.rotateKeys(password: person.password)
            }
            incidents.rotations += 1
        } catch VaultError.unavailable, VaultError.deletionsHeld {
            // It has happened or not.
        } catch VaultError.store where hasFault(link) {
            // The next sync finds out.
        }
    }

    private func hasFault(_ link: LossyTransport) -> Bool {
        person.devices.contains { $0.link === link && $0.life.hasFailed }
    }

    private func restart(patience: Duration) -> @Sendable () async -> Void {
        incidents.restarts += 1
        let (server, links, seed, shared) = (server, person.devices.map(\.link), seed, person.shared)
        return {
            do {
                try await server.restart(timeout: patience)
                for link in links {
                    let transport = try CurlTransport(server.address())
                    link.change(to: shared?.routes(transport) ?? transport)
                }
            } catch {
                Issue.record("seed \(seed): \(error)")
            }
        }
    }

    private func syncOrFail(_ vault: Vault, _ link: LossyTransport) async throws {
        defer {
            link.setFate { .passes }
            link.setRewrite { $1 }
        }
        do {
            // In a task of its own, which may be cancelled.
            let password = person.password
            _ = try await Task { try await vault.sync(loggingInWith: password) }.value
        } catch VaultError.unavailable {
            // Offline, or cut off.
        }
    }

    private func randomMoment() -> LossyTransport.Moment {
        LossyTransport.Moment.allCases.randomElement(using: &random) ?? .beforeReply
    }

    // MARK: Following

    /// A device follows the stream, which is cut, while another one sends something and a person writes here: it hears of
    /// what was sent.
    func follow(_ index: Int, sender: Int) async throws {
        incidents.follows += 1
        let (vault, link) = (try person.vault(index), person.devices[index].link)
        do { try await syncOrFail(vault, link) } catch VaultError.store where hasFault(link) { return }
        if person.devices[index].life.hasEnded { return }
        setCuts(link)
        if random.chance(oneIn: 2) { link.setBadFates(random.next()) }
        let end = Mutex<Result<Void, VaultError>?>(nil)
        let following = Task {
            do throws(VaultError) {
                try await vault.keepInSync()
                end.withLock { $0 = .success(()) }
            } catch {
                end.withLock { $0 = .failure(error) }
            }
        }
        var sent: [ItemID] = []
        for _ in 0..<Int.random(in: 1...3, using: &random) {
            if random.chance(oneIn: 2) { try await write(over: nil, index) }
            if random.chance(oneIn: 30) { await restart(patience: .milliseconds(1))() }
            if let id = try await send(sender) { sent.append(id) }
        }
        let life = person.devices[index].life
        let hasChanged = try await hears(vault, sent) { end.withLock { $0 != nil } || life.hasEnded }
        let early = end.withLock { $0 }
        following.cancel()
        await following.value
        link.setCuts { nil }
        link.setFate { .passes }
        switch early {
        case .failure(.store)? where life.hasFailed: break
        case .failure(let error)?: throw error
        default: #expect(hasChanged || life.hasEnded, "seed \(seed): the follower has not heard of what was sent")
        }
    }

    private func setCuts(_ link: LossyTransport) {
        let random = Mutex(SeededGenerator(seed: random.next()))
        incidents.cuts += 1
        link.setCuts {
            random.withLock { random in random.chance(oneIn: 3) ? nil : Int.random(in: 0...2, using: &random) }
        }
    }

    /// - Returns: What has been sent; nil when it was not.
    private func send(_ index: Int) async throws -> ItemID? {
        let (vault, link) = (try person.vault(index), person.devices[index].link)
        let id = try await write(over: nil, index)
        do { try await syncOrFail(vault, link) } catch VaultError.store where hasFault(link) { return nil }
        let isSent = try await vault.item(id) != nil ? try await vault.unsentCount() == 0 : false
        return isSent && !person.devices[index].life.hasEnded ? id : nil
    }

    /// Waits, without a limit that a slow machine could reach.
    private func hears(_ vault: Vault, _ ids: [ItemID], _ hasEnded: () -> Bool) async throws -> Bool {
        for _ in 0..<18_000 {
            if hasEnded() { return false }
            // Deletions that are held back hold back what comes after them.
            if try await vault.notices().contains(where: { $0.kind == .massDeletion }) { return true }
            var isThere = true
            for id in ids where isThere { isThere = try await vault.item(id) != nil }
            if isThere { return true }
            try await Task.sleep(for: .milliseconds(10))
        }
        return false
    }
}

extension Vault {
    /// Syncs, after a log-in where another device's change of the data keys has ended the session.
    @discardableResult
    func sync(loggingInWith password: Password) async throws -> SyncReport {
        do { return try await sync() } catch VaultError.sessionEnded {
            try await logInAgain(password: password)
            return try await sync()
        }
    }
}
