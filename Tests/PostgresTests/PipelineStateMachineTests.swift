import Testing

@testable import Postgres

@Suite struct PipelineStateMachineTests {
    private typealias Machine = PipelineStateMachine<String>

    /// What the machine said, as text that a test can compare.
    private func answer(_ machine: inout Machine, _ answer: Machine.Answer) -> String {
        switch machine.received(answer) {
        case .none: return "none"
        case .prepared(let statement): return "prepared \(statement)"
        case .keep(let request): return "keep \(request)"
        case .fail(let request, let statement): return "fail \(request) \(statement.map(String.init) ?? "commit")"
        case .failPreparation(let request, let statement): return "unprepare \(statement) fail \(request)"
        case .failLikePreparation(let request, let statement): return "like \(statement) fail \(request)"
        case .violation: return "violation"
        case .settle:
            var verdicts: [String] = []
            while let (request, verdict) = machine.nextVerdict() { verdicts.append("\(request) \(verdict)") }
            return "settle " + verdicts.joined(separator: ", ")
        }
    }

    private func answers(_ machine: inout Machine, _ list: [Machine.Answer]) -> [String] {
        list.map { answer(&machine, $0) }
    }

    /// One request of `count` statements, without a sync.
    private func send(_ request: String, _ count: Int = 1, to machine: inout Machine) {
        for index in 0..<count {
            _ = machine.needsPreparation(index)
            machine.sentStatement(index, of: request, isFirst: index == 0)
        }
    }

    /// One statement, prepared ahead of it where that is needed, with a sync.
    /// - Returns: Whether it was.
    @discardableResult
    private func sendPrepared(_ request: String, _ statement: Int, to machine: inout Machine) -> Bool {
        let needsPreparation = machine.needsPreparation(statement)
        if needsPreparation { machine.sentPreparation(statement: statement) }
        machine.sentStatement(statement, of: request, isFirst: true)
        machine.sentSync()
        return needsPreparation
    }

    @Test func `results belong to the statements in the order they were sent`() {
        var machine = Machine()
        sendPrepared("a", 0, to: &machine)
        send("b", 2, to: &machine)
        machine.sentSync()
        #expect(!machine.isIdle)
        #expect(
            answers(&machine, [.success, .success, .sync, .success, .success, .sync])
                == ["prepared 0", "keep a", "settle a succeeded", "keep b", "keep b", "settle b succeeded"])
        #expect(machine.isIdle)
    }

    @Test func `an error fails its own request and no other batch`() {
        var machine = Machine()
        for request in ["a", "b", "c"] {
            send(request, to: &machine)
            machine.sentSync()
        }
        #expect(
            answers(&machine, [.success, .sync, .failure(.ordinary), .sync, .success, .sync]) == [
                "keep a", "settle a succeeded", "fail b 0", "settle b failed", "keep c", "settle c succeeded",
            ])
    }

    @Test func `an error in a group fails the group`() {
        var machine = Machine()
        send("a", 3, to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .failure(.ordinary), .aborted, .sync]) == [
                "keep a", "fail a 1", "none", "settle a failed",
            ])
        #expect(!machine.isAborted)
    }

    @Test(arguments: [(Machine.Failure.lock, "fail b 0", "failed"), (.ordinary, "none", "again")])
    private func `of a transaction that several share, only who meets a lock hears it, and the rest is sent again`(
        _ failure: Machine.Failure, _ action: String, _ verdict: String
    ) {
        var machine = Machine()
        machine.sentBegin()
        for request in ["a", "b", "c"] { send(request, to: &machine) }
        machine.sentCommit()
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .success, .failure(failure), .aborted, .aborted, .sync]) == [
                "none", "keep a", action, "none", "none", "settle a again, b \(verdict), c again",
            ])
        #expect(machine.owesRollBack)
    }

    @Test func `in a shared batch those before an error succeed and those behind it are sent again`() {
        var machine = Machine()
        send("a", 2, to: &machine)
        send("b", 2, to: &machine)
        send("c", 2, to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .success, .success, .failure(.ordinary), .aborted, .aborted, .sync]) == [
                "keep a", "keep a", "keep b", "fail b 1", "none", "none", "settle a succeeded, b failed, c again",
            ])
    }

    @Test func `a failed preparation fails the request that brought it`() {
        var machine = Machine()
        _ = machine.needsPreparation(8)
        machine.sentPreparation(statement: 7)
        machine.sentStatement(7, of: "a", isFirst: true)
        machine.sentPreparation(statement: 8)
        machine.sentStatement(8, of: "b", isFirst: true)
        machine.sentSync()
        #expect(
            answers(&machine, [.failure(.ordinary), .aborted, .aborted, .aborted, .sync]) == [
                "unprepare 7 fail a", "none", "none", "none", "settle a failed, b again",
            ])
    }

    @Test func `a preparation that fails inside a group fails the group`() {
        var machine = Machine()
        _ = machine.needsPreparation(2)
        machine.sentStatement(1, of: "a", isFirst: true)
        machine.sentPreparation(statement: 2)
        machine.sentStatement(2, of: "a", isFirst: false)
        send("b", to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .failure(.ordinary), .aborted, .aborted, .sync]) == [
                "keep a", "unprepare 2 fail a", "none", "none", "settle a failed, b again",
            ])
    }

    @Test func `an error of the commit fails the one request, and repeats several that only read`() {
        var machine = Machine()
        send("a", to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .failure(.ordinary), .sync]) == ["keep a", "fail a commit", "settle a failed"])
        send("b", to: &machine)
        send("c", to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .success, .failure(.ordinary), .sync])
                == ["keep b", "keep c", "none", "settle b again, c again"])
    }

    @Test func `when the connection ends, what had a sync is lost and what had none is sent again`() {
        var machine = Machine()
        send("done", to: &machine)
        send("failed", 2, to: &machine)
        send("behind", to: &machine)
        machine.sentSync()
        send("whole", to: &machine)
        machine.sentSync()
        send("incomplete", to: &machine)
        _ = answers(&machine, [.success, .failure(.ordinary)])
        let verdicts = machine.end().map { "\($0.request) \($0.verdict)" }
        #expect(verdicts == ["done lost", "failed failed", "behind lost", "whole lost", "incomplete again"])
        #expect(machine.isIdle)
    }

    @Test(arguments: [Machine.Answer.success, .failure(.ordinary), .aborted])
    private func `after a transaction that several share has ended, what had no sync is sent again`(
        _ commit: Machine.Answer
    ) {
        var machine = Machine()
        machine.sentBegin()
        send("a", to: &machine)
        machine.sentCommit()
        machine.sentSync()
        let failure: [Machine.Answer] = if case .aborted = commit { [.failure(.ordinary)] } else { [.success] }
        _ = answers(&machine, [.success] + failure + [commit, .sync])
        send("b", to: &machine)
        #expect(machine.end().map { "\($0.request) \($0.verdict)" } == ["b again"])
    }

    @Test func `an answer that nobody asked for is a violation`() {
        var machine = Machine()
        #expect(
            answers(&machine, [.success, .failure(.ordinary), .aborted, .sync])
                == Array(repeating: "violation", count: 4))
        send("a", to: &machine)
        #expect(answers(&machine, [.sync]) == ["violation"])
    }

    // MARK: Preparations

    @Test func `a late error about an earlier preparation says nothing about a later one`() {
        var machine = Machine()
        // The first request fails before its second statement is prepared; another one is on its way behind it.
        _ = machine.needsPreparation(1)
        machine.sentStatement(0, of: "a", isFirst: true)
        machine.sentPreparation(statement: 1)
        machine.sentStatement(1, of: "a", isFirst: false)
        machine.sentSync()
        #expect(!sendPrepared("b", 1, to: &machine))
        #expect(
            answers(&machine, [.failure(.ordinary), .aborted, .aborted, .sync])
                == ["fail a 0", "none", "none", "settle a failed"])
        #expect(sendPrepared("c", 1, to: &machine), "it is known by now that it was not prepared")
        #expect(answers(&machine, [.failure(.unknownStatement), .sync]) == ["none", "settle b again"])
        #expect(!sendPrepared("d", 1, to: &machine), "its preparation is on its way")
        #expect(
            answers(&machine, [.success, .success, .sync, .success, .sync])
                == ["prepared 1", "keep c", "settle c succeeded", "keep d", "settle d succeeded"])
        #expect(machine.epoch == 0 && !machine.owesCleanUp)
    }

    @Test func `those sent for a preparation that fails have its error, and the next one tries again`() {
        var machine = Machine()
        sendPrepared("a", 0, to: &machine)
        sendPrepared("b", 0, to: &machine)
        #expect(
            answers(
                &machine, [.failure(.ordinary), .aborted, .sync, .failure(.unknownStatement), .sync])
                == ["unprepare 0 fail a", "none", "settle a failed", "like 0 fail b", "settle b failed"])
        #expect(sendPrepared("c", 0, to: &machine))
    }

    @Test(arguments: [Machine.Failure.unknownStatement, .stalePlan])
    private func `when the server has lost or outgrown what it had prepared, everything is prepared again`(
        failure: Machine.Failure
    ) {
        var machine = Machine()
        for statement in 0..<2 { sendPrepared("first", statement, to: &machine) }
        _ = answers(&machine, [.success, .success, .sync, .success, .success, .sync])
        sendPrepared("a", 0, to: &machine)
        sendPrepared("b", 1, to: &machine)
        #expect(
            answers(&machine, [.failure(failure), .sync, .failure(failure), .sync])
                == ["none", "settle a again", "none", "settle b again"])
        #expect(machine.epoch == 1, "the second error tells nothing new")
        #expect(machine.owesCleanUp)
        machine.sentCleanUp()
        machine.sentSync()
        let areNew = (0..<2).map { sendPrepared("again", $0, to: &machine) }
        #expect(areNew == [true, true] && !machine.owesCleanUp)
        #expect(
            answers(&machine, [.success, .sync, .success, .success]) == ["none", "settle ", "prepared 0", "keep again"])
    }

    @Test func `a statement that the server does not support fails, though it was only just prepared`() {
        var machine = Machine()
        sendPrepared("a", 0, to: &machine)
        #expect(
            answers(&machine, [.success, .failure(.stalePlan), .sync]) == ["prepared 0", "fail a 0", "settle a failed"])
        #expect(machine.epoch == 0)
    }

    @Test func `a name that is taken is left to whoever has it`() {
        var machine = Machine()
        sendPrepared("a", 0, to: &machine)
        #expect(
            answers(&machine, [.failure(.duplicateStatement), .aborted, .sync]) == ["none", "none", "settle a again"])
        #expect(machine.epoch == 1)
        #expect(sendPrepared("a", 0, to: &machine))
    }
}
