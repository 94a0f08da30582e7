import SalternTesting
import Testing

@testable import Postgres

/// Judgements of one connection's silence.
@Suite struct ConnectionSilenceTests {
    private typealias Silence = ConnectionSilence
    private let start = ContinuousClock.now
    private static let limits = Silence.Limits(takeover: .seconds(4), commit: .seconds(2), reply: .seconds(20))

    private func make(probe target: ProbeTarget? = nil) -> Silence {
        Silence(limits: Self.limits, connectTimeout: .seconds(10), probeTarget: target, now: start)
    }

    private func check(
        _ silence: inout Silence, _ activity: Silence.Activity, after seconds: Double, servers: Int = 2
    ) -> Silence.Verdict {
        silence.check(activity, serverCount: servers, now: start + .seconds(seconds))
    }

    @Test func `an opening has its own limit, and is silent before it`() {
        var silence = make()
        #expect(check(&silence, .opening, after: 9.9) == .none)
        #expect(silence.isSilent(.opening, serverCount: 2, now: start + .seconds(4)))
        #expect(check(&silence, .opening, after: 10) == .openingTimedOut)
    }

    @Test func `a probe is closed after the patience for a takeover, at the silent server after a quarter of it`() {
        var silence = make(probe: ProbeTarget(preferred: 0, distance: 1))
        #expect(check(&silence, .opening, after: 3.9) == .none)
        #expect(check(&silence, .opening, after: 4) == .openingTimedOut)
        #expect(check(&silence, .waiting(isCommitting: false), after: 4) == .lost)
        silence.restart(start + .seconds(9))
        #expect(
            check(&silence, .waiting(isCommitting: false), after: 10) == .lost, "the opening's limit is for all of it")
        var short = make(probe: ProbeTarget(preferred: 0, distance: 2))
        #expect(check(&short, .opening, after: 1, servers: 0) == .none, "the number of servers is unknown")
        #expect(check(&short, .opening, after: 1) == .openingTimedOut)
    }

    @Test func `a pending reply is waited for up to its limit, and an idle connection for ever`() {
        var silence = make()
        #expect(check(&silence, .waiting(isCommitting: false), after: 19.9) == .none)
        #expect(check(&silence, .idle, after: 1_000) == .none)
        #expect(!silence.isSilent(.idle, serverCount: 2, now: start + .seconds(1_000)))
        #expect(check(&silence, .waiting(isCommitting: true), after: 20) == .givenUp)
        silence.restart(start + .seconds(1))
        #expect(check(&silence, .waiting(isCommitting: false), after: 20) == .none)
        #expect(check(&silence, .closed, after: 1_000) == .none)
    }

    @Test func `a commit that does not end is reported once, until the server replies`() {
        var silence = make()
        #expect(check(&silence, .waiting(isCommitting: true), after: 1.9) == .none)
        #expect(check(&silence, .waiting(isCommitting: false), after: 3) == .none)
        #expect(check(&silence, .waiting(isCommitting: true), after: 3) == .stalled)
        #expect(check(&silence, .waiting(isCommitting: true), after: 4) == .none)
        let ends = [silence.endStall(), silence.endStall()]
        #expect(ends == [true, false])
        #expect(check(&silence, .waiting(isCommitting: true), after: 4) == .stalled)
    }

    @Test func `after a takeover, an opening of the former server is closed and requests have less time`() {
        func supersede(_ silence: inout Silence, _ activity: Silence.Activity, _ elsewhere: Bool, after seconds: Int)
            -> Silence.Supersession
        {
            silence.supersede(
                activity, leadsElsewhere: elsewhere, serverCount: 2, now: start + .seconds(seconds))
        }
        var silence = make()
        #expect(supersede(&silence, .opening, false, after: 1) == .none)
        #expect(supersede(&silence, .opening, true, after: 1) == .close)
        #expect(supersede(&silence, .opening, true, after: 4) == .openingTimedOut)
        #expect(supersede(&silence, .closed, true, after: 4) == .none)
        #expect(check(&silence, .waiting(isCommitting: false), after: 4) == .none)
        #expect(supersede(&silence, .waiting(isCommitting: false), true, after: 0) == .retire)
        #expect(check(&silence, .waiting(isCommitting: false), after: 0.9) == .none)
        #expect(check(&silence, .waiting(isCommitting: false), after: 1) == .lost)
    }

    @Test(arguments: PropertyTests.seeds)
    func `after any events, no connection with a pending reply is kept longer than its limit`(seed: UInt64) {
        var dice = SeededGenerator(seed: seed)
        var silence = make()
        var now = start
        var lastReply = start
        var (isStalled, isSuperseded) = (false, false)
        for _ in 0..<1_000 {
            now += .milliseconds(Int.random(in: 0...1_500, using: &dice))
            let quiet = now - lastReply
            let isCommitting = Bool.random(using: &dice)
            switch Int.random(in: 0..<8, using: &dice) {
            case 0, 1:
                silence.restart(now)
                lastReply = now
                #expect(silence.endStall() == isStalled)
                isStalled = false
            case 2 where Int.random(in: 0..<20, using: &dice) == 0:
                let consequence = silence.supersede(.idle, leadsElsewhere: true, serverCount: 2, now: now)
                #expect(consequence == .retire)
                isSuperseded = true
            default:
                let verdict = silence.check(.waiting(isCommitting: isCommitting), serverCount: 2, now: now)
                let expected: Silence.Verdict =
                    if isSuperseded && quiet >= .seconds(1) {
                        .lost
                    } else if quiet >= .seconds(20) {
                        .givenUp
                    } else if isCommitting && !isStalled && quiet >= .seconds(2) {
                        .stalled
                    } else {
                        .none
                    }
                #expect(verdict == expected)
                isStalled = isStalled || verdict == .stalled
                let isSilent = silence.isSilent(.waiting(isCommitting: isCommitting), serverCount: 2, now: now)
                #expect(isSilent == (quiet >= .seconds(isSuperseded ? 1 : 4)))
            }
        }
    }
}
