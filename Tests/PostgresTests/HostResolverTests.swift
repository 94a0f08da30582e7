import EventLoop
import Foundation
import Synchronization
import Testing

@testable import Postgres

/// Name servers that answer what they are told to, and for some names only when they are let.
private final class NameServers: Sendable {
    private let answers = Mutex<[String: Result<[String], ConnectionFailure>]>([:])
    private let asked = Mutex<[String]>([])
    private let silence = DispatchSemaphore(value: 0)

    func answer(_ name: String, _ result: Result<[String], ConnectionFailure>?) {
        answers.withLock { $0[name] = result }
    }

    var questions: [String] { asked.withLock { $0 } }

    /// Lets one look-up that is silent end.
    func speak() { silence.signal() }

    @Sendable func lookUp(_ name: String) -> Result<[String], ConnectionFailure> {
        asked.withLock { $0.append(name) }
        if let answer = answers.withLock({ $0[name] }) { return answer }
        silence.wait()
        return answers.withLock { $0[name] } ?? .failure(.resolver(EAI_NONAME))
    }
}

@Suite(.timeLimit(.minutes(60))) struct HostResolverTests {
    private let servers = NameServers()

    /// On a loop, with a resolver that asks ``servers``.
    private func withResolver(_ body: @escaping @Sendable (EventLoop, HostResolver) async -> Void) async throws {
        let loop = try EventLoop(name: "test")
        try loop.start()
        defer { loop.stop() }
        let lookUp = servers.lookUp
        await loop.run { await body(loop, HostResolver(loop: loop, lookUp: lookUp)) }
    }

    @Test func `a name that is not answered keeps nobody from the servers of others`() async throws {
        let servers = servers
        servers.answer("standby", .success(["10.0.0.2"]))
        try await withResolver { _, resolver in
            let resolved = await resolver.resolved(["primary", "standby"])
            #expect(resolved.addresses == ["standby": ["10.0.0.2"]])
            let others = await resolver.resolved(["primary"], hasOthers: true)
            #expect(others.addresses.isEmpty)
            // However many have asked.
            #expect(servers.questions.count { $0 == "primary" } == 1)
            servers.speak()
        }
    }

    @Test func `who knows no other server waits`() async throws {
        let servers = servers
        try await withResolver { loop, resolver in
            let timer = LoopTimer(loop: loop) {
                servers.answer("primary", .success(["10.0.0.1"]))
                servers.speak()
            }
            timer.schedule(after: HostResolver.patience * 2)
            #expect(await resolver.resolved(["primary"]).addresses == ["primary": ["10.0.0.1"]])
            timer.cancel()
        }
    }

    @Test func `a name that is not answered any more has the addresses it had`() async throws {
        let servers = servers
        servers.answer("primary", .success(["10.0.0.1"]))
        try await withResolver { _, resolver in
            _ = await resolver.resolved(["primary"])
            servers.answer("primary", .failure(.resolver(EAI_AGAIN)))
            #expect(await resolver.resolved(["primary"]).addresses == ["primary": ["10.0.0.1"]])
            servers.answer("primary", nil)
            #expect(await resolver.resolved(["primary"]).addresses == ["primary": ["10.0.0.1"]])
            servers.answer("primary", .failure(.resolver(EAI_NONAME)))
            servers.speak()
            // The look-up that was silent is the one that says so.
            let gone = await resolver.resolved(["primary"])
            #expect(gone.addresses.isEmpty)
            #expect(gone.failure == .resolver(EAI_NONAME))
        }
    }
}

extension HostResolver {
    fileprivate func resolved(_ names: [String], hasOthers: Bool = false) async -> Resolved {
        await withUnsafeContinuation { continuation in
            resolve(names, hasOthers: hasOthers) { continuation.resume(returning: $0) }
        }
    }
}
