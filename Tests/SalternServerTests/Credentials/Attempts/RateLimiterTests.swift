import HTTPCore
import Synchronization
import Testing

@testable import SalternServer

@Suite struct RateLimiterTests {
    private final class Time: Sendable {
        private let nanoseconds = Atomic<Int64>(0)
        var now: Duration { .nanoseconds(nanoseconds.load(ordering: .relaxed)) }
        func advance(_ duration: Duration) {
            let (seconds, attoseconds) = duration.components
            nanoseconds.add(seconds * 1_000_000_000 + attoseconds / 1_000_000_000, ordering: .relaxed)
        }
    }

    private let time = Time()

    private func limiter(_ burst: Int, _ rate: Double) -> RateLimiter {
        RateLimiter(RateLimits([.login: RateLimit(burst: burst, perSecond: rate)])) { [time] in time.now }
    }

    private func client(_ address: String) -> ClientAddress { ClientAddress(address: address, port: 1) }

    @Test func `a bucket gives its burst, and then what drips in`() {
        let limiter = limiter(3, 2)
        let ada = client("192.0.2.1")
        for _ in 0..<3 { #expect(limiter.take(ada, .login) == nil) }
        #expect(limiter.take(ada, .login)?.wait == .milliseconds(500))
        #expect(limiter.isExhausted(ada, .login))
        time.advance(.milliseconds(499))
        #expect(limiter.take(ada, .login)?.wait == .milliseconds(1))
        time.advance(.milliseconds(1))
        #expect(!limiter.isExhausted(ada, .login))
        #expect(limiter.take(ada, .login) == nil)
        #expect(limiter.take(ada, .login) != nil)
        // It never holds more than the burst.
        time.advance(.seconds(3_600))
        for _ in 0..<3 { #expect(limiter.take(ada, .login) == nil) }
        #expect(limiter.take(ada, .login) != nil)
    }

    @Test func `a refusal takes nothing and is counted`() {
        let limiter = limiter(1, 1)
        let ada = client("192.0.2.1")
        #expect(limiter.take(ada, .login) == nil)
        for _ in 0..<10 { #expect(limiter.take(ada, .login)?.wait == .seconds(1)) }
        #expect(limiter.refused.first { $0.rateClass == .login }?.count == 10)
        time.advance(.seconds(1))
        #expect(limiter.take(ada, .login) == nil)
    }

    @Test func `addresses and classes have buckets of their own, a network of IPv6 has one`() {
        let limits = RateLimits([.login: RateLimit(burst: 1, perSecond: 1), .lookup: RateLimit(burst: 1, perSecond: 1)])
        let limiter = RateLimiter(limits) { [time] in time.now }
        for address in ["192.0.2.1", "192.0.2.2", "2001:db8:0:1::1", "2001:db8:0:2::1"] {
            #expect(limiter.take(client(address), .login) == nil, "\(address)")
            #expect(limiter.take(client(address), .lookup) == nil, "\(address)")
        }
        for address in ["192.0.2.1", "::ffff:192.0.2.1", "2001:db8:0:1:ffff:ffff:ffff:ffff"] {
            #expect(limiter.take(client(address), .login) != nil, "\(address)")
        }
        // A class without a figure is not limited.
        for _ in 0..<10_000 { #expect(limiter.take(client("192.0.2.1"), .account) == nil) }
    }

    @Test func `a peek leaves the token`() {
        let limiter = limiter(1, 1)
        let ada = client("192.0.2.1")
        for _ in 0..<5 { #expect(limiter.refusal(ada, .login) == nil) }
        #expect(limiter.take(ada, .login) == nil)
        #expect(limiter.refusal(ada, .login)?.wait == .seconds(1))
    }

    @Test func `a flood of addresses takes no more room, and does not free an abuser`() {
        let limiter = limiter(50, 0.01)
        let abuser = client("192.0.2.1")
        for _ in 0..<60 { limiter.take(abuser, .login) }
        #expect(limiter.isExhausted(abuser, .login))
        // Twice the room, and more.
        for number in 0..<140_000 as Range<UInt32> {
            let low = String(number & 0xFFFF, radix: 16)
            limiter.take(client("2001:db8:\(String(number >> 16, radix: 16)):\(low)::1"), .login)
        }
        // Its bucket is the emptiest of all, so it is the last to be forgotten.
        #expect(limiter.isExhausted(abuser, .login))
        #expect(limiter.bucketCount <= 65_536)
    }

    @Test func `loops share it`() async {
        let limiter = limiter(1_000, 0.01)
        let granted = await withTaskGroup(of: Int.self) { group in
            for _ in 0..<4 {
                group.addTask {
                    (0..<2_000).count { _ in limiter.take(ClientAddress(address: "192.0.2.1", port: 1), .login) == nil }
                }
            }
            return await group.reduce(0, +)
        }
        #expect(granted == 1_000)
    }

    @Test func `the answer says when to come back`() {
        let fields = RateLimited(wait: .milliseconds(1_200)).problem.responseFields
        #expect(fields["Retry-After"] == "2")
        #expect(RateLimited(wait: .nanoseconds(1)).problem.responseFields["Retry-After"] == "1")
    }
}

@Suite struct RateLimitsTests {
    @Test func `figures replace the standard ones`() throws {
        let limits = try #require(RateLimits("login=20/5,share-miss=1/0.25"))
        #expect(limits.limits[.login] == RateLimit(burst: 20, perSecond: 5))
        #expect(limits.limits[.shareMiss] == RateLimit(burst: 1, perSecond: 0.25))
        #expect(limits.limits[.lookup] == RateLimits.standard.limits[.lookup])
        #expect(RateLimits("login=20/5, share-miss=1/0.25") == limits)
        #expect(RateLimits("on") == .standard)
        #expect(RateLimits("off") == .off)
    }

    @Test(arguments: [
        "", "ON", "none", "login", "login=", "login=20", "login=20/", "login=/5", "login=20/5,", ",login=20/5",
        "login=0/5",
        "login=20/0", "login=20/0.001", "login=-1/5", "login=+1/5", "login=1e3/5", "login=20/1e3", "login=20/inf",
        "login=20/nan", "login=20/5/5", "login=20/5,login=1/1", "logins=20/5", "shareMiss=1/1", "login=1000001/5",
        "login=20/1000001", "login =20/5", "login=20/5 ", "login=20/5;lookup=1/1", "login=1/.", "on,login=20/5",
        "login=99999999999999999999/1",
    ])
    func `anything else is refused`(text: String) {
        #expect(RateLimits(text) == nil)
    }
}
