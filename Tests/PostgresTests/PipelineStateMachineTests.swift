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
        case .forgetPreparation(let statement): return "unprepare \(statement)"
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
        for index in 0..<count { machine.sentStatement(index, of: request, isFirst: index == 0) }
    }

    @Test func `results belong to the statements in the order they were sent`() {
        var machine = Machine()
        machine.sentPreparation(statement: 0)
        send("a", to: &machine)
        machine.sentSync()
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
            answers(&machine, [.success, .sync, .failure, .sync, .success, .sync]) == [
                "keep a", "settle a succeeded", "fail b 0", "settle b failed", "keep c", "settle c succeeded",
            ])
    }

    @Test func `an error in a group fails the group`() {
        var machine = Machine()
        send("a", 3, to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .failure, .aborted, .sync]) == [
                "keep a", "fail a 1", "none", "settle a failed",
            ])
        #expect(!machine.isAborted)
    }

    @Test func `in a shared batch those before an error succeed and those behind it are sent again`() {
        var machine = Machine()
        send("a", 2, to: &machine)
        send("b", 2, to: &machine)
        send("c", 2, to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .success, .success, .failure, .aborted, .aborted, .sync]) == [
                "keep a", "keep a", "keep b", "fail b 1", "none", "none", "settle a succeeded, b failed, c again",
            ])
    }

    @Test func `a failed preparation fails the request that brought it`() {
        var machine = Machine()
        machine.sentPreparation(statement: 7)
        machine.sentStatement(7, of: "a", isFirst: true)
        machine.sentPreparation(statement: 8)
        machine.sentStatement(8, of: "b", isFirst: true)
        machine.sentSync()
        #expect(
            answers(&machine, [.failure, .aborted, .aborted, .aborted, .sync]) == [
                "unprepare 7 fail a", "none", "unprepare 8", "none", "settle a failed, b again",
            ])
    }

    @Test func `a preparation that fails inside a group fails the group`() {
        var machine = Machine()
        machine.sentStatement(1, of: "a", isFirst: true)
        machine.sentPreparation(statement: 2)
        machine.sentStatement(2, of: "a", isFirst: false)
        send("b", to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .failure, .aborted, .aborted, .sync]) == [
                "keep a", "unprepare 2 fail a", "none", "none", "settle a failed, b again",
            ])
    }

    @Test func `an error of the commit fails the one request, and repeats several that only read`() {
        var machine = Machine()
        send("a", to: &machine)
        machine.sentSync()
        #expect(answers(&machine, [.success, .failure, .sync]) == ["keep a", "fail a commit", "settle a failed"])
        send("b", to: &machine)
        send("c", to: &machine)
        machine.sentSync()
        #expect(
            answers(&machine, [.success, .success, .failure, .sync])
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
        _ = answers(&machine, [.success, .failure])
        let verdicts = machine.end().map { "\($0.request) \($0.verdict)" }
        #expect(verdicts == ["done lost", "failed failed", "behind lost", "whole lost", "incomplete again"])
        #expect(machine.isIdle)
    }

    @Test func `an answer that nobody asked for is a violation`() {
        var machine = Machine()
        #expect(answers(&machine, [.success, .failure, .aborted, .sync]) == Array(repeating: "violation", count: 4))
        send("a", to: &machine)
        #expect(answers(&machine, [.sync]) == ["violation"])
    }
}
