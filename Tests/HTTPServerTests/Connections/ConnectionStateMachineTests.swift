import HTTPCore
import SalternTesting
import Testing

@testable import HTTPServer

/// Without sockets: what a connection does next, whatever happens in whatever order.
@Suite struct ConnectionStateMachineTests {
    private typealias Machine = ConnectionStateMachine

    private static func exchange(
        keepAlive: Bool = true, chunks: Bool = true, body: Bool = false
    ) -> Machine.Exchange {
        Machine.Exchange(wantsKeepAlive: keepAlive, readsChunks: chunks, isRead: !body)
    }

    private static func responding(_ exchange: Machine.Exchange = exchange(), isOverLimit: Bool = false) -> Machine {
        var machine = Machine(isOverLimit: isOverLimit)
        machine.handshakeFinished()
        machine.headRead(exchange)
        let isWanted = machine.admitted(machine.number)
        #expect(isWanted)
        machine.bodyRead()
        return machine
    }

    // MARK: The one rule

    @Test(arguments: [
        (exchange(), false), (exchange(keepAlive: false), true), (exchange(body: true), true),
        (exchange(chunks: false), false),
    ])
    private func `a refusal of a head closes by the same rule as a reply`(exchange: Machine.Exchange, closes: Bool) {
        var refused = Machine(isOverLimit: false)
        refused.handshakeFinished()
        refused.headRead(exchange)
        #expect(refused.replied(to: 1) == closes)
        #expect(refused.state == .writing(closes: closes))

        var whole = exchange
        whole.isRead = true
        var answered = Self.responding(exchange)
        #expect(answered.replied(to: 1) == !whole.wantsKeepAlive)
    }

    @Test func `a stream to somebody who reads no chunks ends with the connection`() {
        var machine = Self.responding(Self.exchange(chunks: false))
        #expect(machine.replied(to: 1, end: .stream(isOpenEnded: false)) == true)
        var other = Self.responding()
        #expect(other.replied(to: 1, end: .stream(isOpenEnded: false)) == false)
    }

    @Test func `what is no request, or is given up, ends the connection`() {
        var machine = Machine(isOverLimit: false)
        machine.handshakeFinished()
        #expect(machine.refused() == true)
        #expect(machine.state == .writing(closes: true))
        var late = Self.responding()
        #expect(late.deadlinePassed() == .refuse(.handlerTimeout))
        #expect(late.refused() == true)
        // The reply that comes after all is nobody's.
        #expect(late.replied(to: 1) == nil)
        #expect(late.outputTaken() == .linger)
    }

    @Test func `a connection over the limit is told so and ends`() {
        var machine = Machine(isOverLimit: true)
        machine.handshakeFinished()
        machine.headRead(Self.exchange())
        #expect(machine.replied(to: 1) == true)
    }

    // MARK: Draining

    @Test func `a reply that is being written when the server stops is written to its end, and is the last`() {
        var machine = Self.responding()
        #expect(machine.replied(to: 1) == false)
        #expect(machine.drain(isNew: true) == .none)
        #expect(machine.state == .writing(closes: false))
        #expect(machine.outputTaken() == .linger)
        #expect(machine.state == .lingering)
    }

    @Test func `a server that stops waits for those it knows, and for others a little`() {
        for isKnown in [false, true] {
            var machine = Machine(isOverLimit: false)
            machine.handshakeFinished()
            machine.headRead(Self.exchange(body: true))
            #expect(machine.admitted(1, isIdentified: isKnown) == true)
            #expect(machine.drain(isNew: true) == .none)
            #expect(machine.drainGracePassed() == (isKnown ? .none : .refuse(.overloaded(retryAfter: 1))))
        }
        var answering = Self.responding()
        _ = answering.drain(isNew: true)
        #expect(answering.drainGracePassed() == .none)
        #expect(answering.replied(to: 1) == true)
        var idle = Machine(isOverLimit: false)
        idle.handshakeFinished()
        #expect(idle.drain(isNew: false) == .farewell)
        var endless = Self.responding()
        _ = endless.replied(to: 1, end: .stream(isOpenEnded: true))
        #expect(endless.drain(isNew: true) == .endStream)
    }

    @Test(arguments: [true, false])
    func `a new connection has its first request answered when the server stops, and no other`(shakesHands: Bool) {
        var machine = Machine(isOverLimit: false)
        if !shakesHands { machine.handshakeFinished() }
        #expect(machine.drain(isNew: true) == .awaitFirst)
        machine.handshakeFinished()
        #expect(machine.state == .idle)
        machine.headRead(Self.exchange())
        #expect(machine.replied(to: 1) == true)
        #expect(machine.outputTaken() == .linger)
    }

    @Test func `a connection that has had an answer is not new`() {
        var machine = Self.responding()
        _ = machine.replied(to: 1)
        #expect(machine.outputTaken() == .readOn)
        #expect(machine.drain(isNew: true) == .farewell)
    }

    // MARK: Any order

    /// Everything that can happen to a connection, in random orders: a model says what must hold whatever comes.
    @Test(arguments: PropertyTests.seeds)
    func `in whatever order things happen, replies are answered once and every way leads to the end`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        for _ in 0..<200 {
            var machine = Machine(isOverLimit: random.chance(oneIn: 10))
            var model = Model()
            for _ in 0..<200 where machine.state != .closed {
                model.step(&machine, &random)
            }
            _ = machine.drain(isNew: true)
            // Nobody helps any more but the clock.
            for _ in 0..<8 where machine.state != .closed { model.expire(&machine) }
            #expect(machine.state == .closed)
            #expect(model.violations == [])
        }
    }

    /// What a connection does with the machine's answers, as far as one can see it from outside.
    private struct Model {
        /// Requests whose head was read, and replies or refusals that were handed over.
        var heads = 0
        var replies = 0
        /// A reply has said that it is the last.
        var saidClose = false
        var violations: [String] = []

        private mutating func check(_ holds: Bool, _ what: String) { if !holds { violations.append(what) } }

        mutating func step(_ machine: inout Machine, _ random: inout SeededGenerator) {
            switch random.next() % 14 {
            case 0: machine.handshakeFinished()
            case 1: machine.inputWaits()
            case 2, 3, 4:
                guard machine.awaitsHead else { return }
                check(!saidClose, "no request is read after a reply that was the last")
                heads += 1
                machine.headRead(
                    exchange(
                        keepAlive: !random.chance(oneIn: 5), chunks: !random.chance(oneIn: 5),
                        body: random.chance(oneIn: 2)))
            case 5: _ = machine.admitted(machine.number, isIdentified: random.chance(oneIn: 2))
            case 6: if machine.isReadingBody { machine.bodyRead() }
            case 7, 8: reply(&machine, &random)
            case 9: perform(machine.outputTaken(), &machine)
            case 10: perform(machine.streamEnded(isComplete: !random.chance(oneIn: 4)), &machine)
            case 11: perform(machine.deadlinePassed(), &machine)
            case 12: if random.chance(oneIn: 6) { perform(machine.drain(isNew: random.chance(oneIn: 2)), &machine) }
            default: if random.chance(oneIn: 6) { perform(machine.drainGracePassed(), &machine) }
            }
        }

        /// The deadline of the state, or what it waits for.
        mutating func expire(_ machine: inout Machine) {
            perform(machine.deadlinePassed(), &machine)
            perform(machine.outputTaken(), &machine)
        }

        private mutating func reply(_ machine: inout Machine, _ random: inout SeededGenerator) {
            let number = random.chance(oneIn: 4) ? machine.number - 1 : machine.number
            let isAwaited =
                switch machine.state {
                case .admitting, .responding: number == machine.number
                default: false
                }
            let closes = machine.replied(to: number, end: random.chance(oneIn: 3) ? .stream(isOpenEnded: true) : .known)
            check((closes != nil) == isAwaited, "a reply is taken when it is awaited, and then only")
            if let closes { replied(closes) }
        }

        private mutating func replied(_ closes: Bool) {
            replies += 1
            check(!saidClose, "nothing follows a reply that was the last")
            check(replies <= heads + 1, "a request is answered once")
            saidClose = closes
        }

        private mutating func perform(_ action: Machine.Action, _ machine: inout Machine) {
            switch action {
            case .none: break
            case .readOn: check(machine.state == .idle && !saidClose, "the next request is read when it may come")
            case .awaitFirst:
                check(heads == 0 && machine.isDraining, "nothing is awaited of a connection that has asked before")
            case .linger: check(machine.state == .lingering, "a connection that says its end lingers")
            case .farewell, .close, .abort:
                check(machine.closed(), "a connection is closed once")
                check(!machine.closed(), "and only once")
            case .endStream: perform(machine.streamEnded(isComplete: true), &machine)
            case .refuse: if machine.refused() { replied(true) } else { _ = machine.closed() }
            }
        }
    }
}
