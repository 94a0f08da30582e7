import Testing

@testable import HTTPServer

/// The pure parts that say who has had enough.
@Suite struct BoundTests {
    @Test func `a network holds a part of the places, and no more than there are`() {
        var places = RequestPlaces(total: 10, share: 4)
        for _ in 0..<4 { #expect(places.take(for: 1) == true) }
        #expect(places.take(for: 1) == false)
        #expect(!places.hasRoom(for: 1))
        for network in 2...7 { #expect(places.take(for: UInt64(network)) == true) }
        #expect(places.take(for: 8) == false)
        places.give(of: 1)
        #expect(places.hasRoom(for: 8))
        #expect(places.take(for: 1) == true)
        for _ in 0..<4 { places.give(of: 1) }
        for network in 2...7 { places.give(of: UInt64(network)) }
        #expect(places.taken == 0)
        #expect(places.take(for: 8) == true)
    }

    @Test func `one address may have an eighth of a loop's requests`() {
        var configuration = HTTPServerConfiguration()
        #expect(configuration.requestShare * 8 == configuration.maximumConcurrentRequestsPerLoop)
        configuration.maximumConnectionsPerAddress = 10_000
        // Half of the connections beyond the usual 2,048.
        #expect(configuration.requestShare == 3_976)
    }

    @Test func `something has to move in each window, and a body need not in its first`() {
        var reply = ProgressMeter()
        reply.begin(at: 50)
        #expect(reply.windowPassed(at: 150, requiring: 100) == true)
        #expect(reply.windowPassed(at: 249, requiring: 100) == false)
        var body = ProgressMeter(forgivesFirst: true)
        #expect(body.windowPassed(at: 0, requiring: 100) == true)
        #expect(body.windowPassed(at: 100, requiring: 100) == true)
        #expect(body.windowPassed(at: 199, requiring: 100) == false)
    }

    @Test func `a body that others wait for is checked when its loan ends, if that is before the end of its window`() {
        let (configuration, now) = (HTTPServerConfiguration(), ContinuousClock.now)
        #expect(configuration.bodyCheck(after: now, end: nil) == now + .seconds(10))
        #expect(configuration.bodyCheck(after: now, end: now + .seconds(11)) == now + .seconds(10))
        #expect(configuration.bodyCheck(after: now, end: now + .seconds(9)) == now + .seconds(9))
    }

    @Test func `a reply has to move at two kibibytes a second`() {
        var configuration = HTTPServerConfiguration()
        #expect(configuration.writeProgress == 61_440)
        configuration.writeDeadline = .milliseconds(500)
        #expect(configuration.writeProgress == 1_024)
    }
}
