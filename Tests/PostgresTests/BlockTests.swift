import Testing

@testable import Postgres

/// One request with BEGIN before it and COMMIT behind a sync of its own.
@Suite struct BlockTests {
    private typealias Machine = PipelineStateMachine<String>

    private var machine = Machine()

    /// What becomes of requests, and whose errors were told.
    private mutating func take(_ answers: [Machine.Answer]) -> [String] {
        var told: [String] = []
        for answer in answers {
            switch machine.received(answer) {
            case .none, .prepared, .keep: break
            case .fail(let request, let statement):
                told.append("\(request) hears \(statement.map(String.init) ?? "commit")")
            case .failPreparation(let request, let statement), .failLikePreparation(let request, let statement):
                told.append("\(request) hears preparation \(statement)")
            case .settle:
                while let (request, verdict) = machine.nextVerdict() { told.append("\(request) \(verdict)") }
            case .violation: told.append("violation")
            }
        }
        return told
    }

    private mutating func begin(_ request: String) {
        machine.sentBlockBegin()
        machine.sentSetting()
        for statement in 0..<2 {
            _ = machine.needsPreparation(statement)
            machine.sentStatement(statement, of: request, isFirst: statement == 0)
        }
    }

    private mutating func send(_ request: String) {
        begin(request)
        machine.sentBlockEnd()
        machine.sentSync()
    }

    @Test mutating func `a block succeeds when it is committed, and not before`() {
        send("a")
        #expect(take([.success, .success, .success, .success, .sync, .success]).isEmpty)
        #expect(take([.sync]) == ["a succeeded"])
        #expect(machine.isIdle)
    }

    @Test mutating func `an error is the request's own, and what was sent behind the block is carried out`() {
        send("a")
        send("b")
        #expect(take([.success, .success, .success, .failure(.lock), .sync, .success]) == ["a hears 1"])
        #expect(take([.sync]) == ["a failed"])
        #expect(take([.success, .success, .success, .success, .sync, .success, .sync]) == ["b succeeded"])
        #expect(!machine.owesRollBack)
    }

    @Test mutating func `a commit that fails is the request's own error`() {
        send("a")
        #expect(
            take([.success, .success, .success, .success, .sync, .failure(.ordinary), .sync])
                == ["a hears commit", "a failed"])
        #expect(machine.isIdle)
    }

    @Test mutating func `a block that could not begin is sent again`() {
        send("a")
        #expect(
            take([.failure(.ordinary), .aborted, .aborted, .aborted, .sync, .success, .sync]) == ["a again"])
    }

    @Test mutating func `nobody knows of a block whose COMMIT was sent, and one that was not complete took no effect`()
    {
        send("a")
        #expect(take([.success, .success, .success, .success, .sync]).isEmpty)
        begin("b")
        #expect(machine.end().map { "\($0.request) \($0.verdict)" } == ["a lost", "b again"])
    }
}
