import SalternTesting
import Testing

@testable import Postgres

/// The pipeline's machine against a model of the server, with everything that can go wrong in random order.
@Suite struct PipelineModelTests {
    /// What a server does with messages, as far as pipelines and prepared statements go.
    private struct Server {
        enum Message {
            case parse(statement: Int, name: String)
            case execute(statement: Int, name: String, request: Int, isReadOnly: Bool)
            case deallocateAll
            case begin, commit, rollBack
            case sync
        }

        enum Block {
            case none, open, failed
        }

        struct Prepared {
            var statement: Int
            var schema: Int
        }

        var messages: [Message] = []
        var prepared: [String: Prepared] = [:]
        /// How many statements of a request took effect, or were answered to one that only reads.
        var committed: [Int: Int] = [:]
        var read: [Int: Int] = [:]
        private var schema = 0
        private var written: [Int] = []
        private var skips = false
        private var block = Block.none

        mutating func changeSchema() { schema += 1 }

        /// Answers one message.
        mutating func answer(_ random: inout SeededGenerator, errors: Double) -> PipelineStateMachine<Int>.Answer {
            let message = messages.removeFirst()
            if case .sync = message {
                skips = false
                if block != .none { return .sync }
                defer { written = [] }
                if !written.isEmpty, random.chance(errors / 4) {
                    messages.insert(.sync, at: 0)
                    skips = true
                    return .failure(.ordinary)
                }
                commit()
                return .sync
            }
            if skips { return .aborted }
            if case .rollBack = message {
                block = .none
                return .success
            }
            #expect(block != .failed, "something was sent into a transaction that had failed")
            if random.chance(errors) { return fail(random.chance(0.3) ? .lock : .ordinary, message) }
            switch message {
            case .begin: block = .open
            case .commit:
                commit()
                block = .none
            case .parse(let statement, let name):
                if prepared[name] != nil { return fail(.duplicateStatement) }
                prepared[name] = Prepared(statement: statement, schema: schema)
            case .execute(let statement, let name, let request, let isReadOnly):
                guard let plan = prepared[name] else { return fail(.unknownStatement) }
                if plan.schema < schema { return fail(.stalePlan) }
                #expect(plan.statement == statement, "another statement was executed than the one that was meant")
                if isReadOnly { read[request, default: 0] += 1 } else { written.append(request) }
            case .deallocateAll: prepared = [:]
            case .sync, .rollBack: break
            }
            return .success
        }

        private mutating func commit() {
            for request in written { committed[request, default: 0] += 1 }
            written = []
        }

        private mutating func fail(
            _ failure: PipelineStateMachine<Int>.Failure, _ message: Message = .sync
        ) -> PipelineStateMachine<Int>.Answer {
            skips = true
            written = []
            if case .commit = message { block = .none } else if block == .open { block = .failed }
            return .failure(failure)
        }
    }

    /// A connection around the machine, as far as it decides what is sent.
    private struct Connection {
        var machine = PipelineStateMachine<Int>()
        var server = Server()
        var verdicts: [Int: PipelineStateMachine<Int>.Verdict] = [:]
        private var openBatch = Batch.none

        enum Batch { case none, readOnly, single }

        func name(_ statement: Int) -> String { "\(statement)_\(machine.epoch)" }

        mutating func send(_ request: Int, _ statements: [Int], isReadOnly: Bool) {
            if openBatch == .single || openBatch == .readOnly && !isReadOnly { sync() }
            settleDebts()
            openBatch = isReadOnly ? .readOnly : .single
            append(request, statements, isReadOnly: isReadOnly)
        }

        /// As the pool has it: when the machine is idle, and with nothing behind it until it is answered.
        mutating func sendGroup(_ requests: [(number: Int, statements: [Int])], isWhole: Bool) {
            settleDebts()
            machine.sentBegin()
            server.messages.append(.begin)
            for request in requests { append(request.number, request.statements, isReadOnly: false) }
            machine.sentCommit()
            server.messages.append(.commit)
            openBatch = .single
            if isWhole { sync() }
        }

        private mutating func settleDebts() {
            if machine.owesRollBack {
                machine.sentRollBack()
                server.messages.append(.rollBack)
                openBatch = .single
                sync()
            }
            if machine.owesCleanUp {
                sync()
                machine.sentCleanUp()
                server.messages.append(.deallocateAll)
                openBatch = .single
                sync()
            }
        }

        private mutating func append(_ request: Int, _ statements: [Int], isReadOnly: Bool) {
            for (index, statement) in statements.enumerated() {
                if machine.needsPreparation(statement) {
                    machine.sentPreparation(statement: statement)
                    server.messages.append(.parse(statement: statement, name: name(statement)))
                }
                machine.sentStatement(statement, of: request, isFirst: index == 0)
                server.messages.append(
                    .execute(statement: statement, name: name(statement), request: request, isReadOnly: isReadOnly))
            }
        }

        mutating func sync() {
            if openBatch == .none { return }
            openBatch = .none
            machine.sentSync()
            server.messages.append(.sync)
        }

        mutating func receive(_ random: inout SeededGenerator, errors: Double) {
            switch machine.received(server.answer(&random, errors: errors)) {
            case .violation: Issue.record("the machine did not expect the answer")
            case .settle:
                while let (request, verdict) = machine.nextVerdict() { record(request, verdict) }
            default: break
            }
        }

        mutating func record(_ request: Int, _ verdict: PipelineStateMachine<Int>.Verdict) {
            #expect(verdicts[request] == nil, "one verdict for each request")
            verdicts[request] = verdict
        }
    }

    private static let statementCount = 6

    private static func statements(_ random: inout SeededGenerator) -> [Int] {
        (0..<Int.random(in: 1...4, using: &random)).map { _ in Int.random(in: 0..<statementCount, using: &random) }
    }

    @Test(arguments: PropertyTests.seeds)
    func `whatever happens, verdicts are true and every statement can be executed afterwards`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var connection = Connection()
        var sizes: [Int: Int] = [:]
        for request in 0..<200 {
            let statements = Self.statements(&random)
            sizes[request] = statements.count
            connection.send(request, statements, isReadOnly: random.chance(0.3))
            if random.chance(0.6) { connection.sync() }
            disturb(&connection.server, connection.name(0), &random)
            let answers = Int.random(in: 0...8, using: &random)
            // What comes behind the last sync is not answered yet.
            for _ in 0..<answers
            where connection.server.messages.contains(where: { if case .sync = $0 { true } else { false } }) {
                connection.receive(&random, errors: 0.08)
            }
        }
        if random.chance(0.3) {
            checkLoss(&connection, sizes, &random)
            return
        }
        connection.sync()
        while !connection.server.messages.isEmpty { connection.receive(&random, errors: 0.08) }
        #expect(connection.machine.isIdle)
        checkVerdicts(connection, sizes)
        checkRecovery(&connection, &random)
    }

    @Test(arguments: PropertyTests.seeds)
    func `a group takes effect as a whole or not at all, and what is told of it is true`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var connection = Connection()
        var sizes: [Int: Int] = [:]
        for _ in 0..<60 {
            var requests: [(number: Int, statements: [Int])] = []
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                requests.append((sizes.count, Self.statements(&random)))
                sizes[sizes.count] = requests.last?.statements.count
            }
            if requests.count == 1 {
                connection.send(requests[0].number, requests[0].statements, isReadOnly: false)
                connection.sync()
            } else {
                connection.sendGroup(requests, isWhole: random.chance(0.99))
            }
            disturb(&connection.server, connection.name(0), &random)
            let isCut = connection.server.messages.last.map { if case .sync = $0 { false } else { true } } ?? false
            if isCut || random.chance(0.005) {
                for _ in 0..<Int.random(in: 0...connection.server.messages.count, using: &random)
                where !connection.server.messages.isEmpty { connection.receive(&random, errors: 0.02) }
                checkLoss(&connection, sizes, &random)
                return
            }
            while !connection.server.messages.isEmpty { connection.receive(&random, errors: 0.02) }
            let told = Set(requests.map { connection.verdicts[$0.number] == .succeeded })
            #expect(told.count == 1, "one of a group was done and another not")
        }
        #expect(connection.machine.isIdle)
        checkVerdicts(connection, sizes)
        checkRecovery(&connection, &random)
    }

    /// What others do to the server's statements.
    private func disturb(_ server: inout Server, _ name: String, _ random: inout SeededGenerator) {
        if random.chance(0.03) { server.changeSchema() }
        if random.chance(0.03) { server.prepared = [:] }
        if random.chance(0.02) { server.prepared[name] = .init(statement: 0, schema: 1_000) }
    }

    private func checkVerdicts(_ connection: Connection, _ sizes: [Int: Int]) {
        for (request, size) in sizes {
            let effects = connection.server.committed[request, default: 0]
            let verdict = connection.verdicts[request]
            if let read = connection.server.read[request] {
                #expect(verdict != .succeeded || read == size)
            } else {
                #expect(effects == (verdict == .succeeded ? size : 0), "request \(request)")
            }
            #expect(verdict != nil && verdict != .lost)
        }
    }

    /// The connection ends: what is said to be safe to repeat has had no effect.
    private func checkLoss(
        _ connection: inout Connection, _ sizes: [Int: Int], _ random: inout SeededGenerator
    ) {
        // The server goes on with what it was sent, and nobody hears its answers.
        for _ in 0..<Int.random(in: 0...connection.server.messages.count, using: &random)
        where !connection.server.messages.isEmpty { _ = connection.server.answer(&random, errors: 0.02) }
        for (request, verdict) in connection.machine.end() { connection.record(request, verdict) }
        for (request, size) in sizes {
            let effects = connection.server.committed[request, default: 0]
            switch connection.verdicts[request] {
            case .succeeded: #expect(effects == size || connection.server.read[request] == size)
            case .failed, .again: #expect(effects == 0)
            case .lost: break
            case nil: Issue.record("request \(request) has no verdict")
            }
        }
    }

    /// When nothing goes wrong any more, each statement succeeds within the attempts that a client makes.
    private func checkRecovery(_ connection: inout Connection, _ random: inout SeededGenerator) {
        var next = 1_000
        for statement in 0..<Self.statementCount {
            var hasSucceeded = false
            for _ in 0..<3 where !hasSucceeded {
                next += 1
                connection.send(next, [statement], isReadOnly: false)
                connection.sync()
                while !connection.server.messages.isEmpty { connection.receive(&random, errors: 0) }
                hasSucceeded = connection.verdicts[next] == .succeeded
            }
            #expect(hasSucceeded, "statement \(statement) is broken for good")
        }
        #expect(connection.server.prepared.count <= Self.statementCount + 1, "statements are left behind")
    }
}
