import Postgres
import Testing

@testable import SalternServer

@Suite struct LiveSubscriptionTests {
    private static func subscription(revision: Int64, told: Int64?) -> LiveSubscription {
        let account = AccountID.random()
        return LiveSubscription(
            session: SessionKey(accountID: account, tokenHash: SessionToken(for: account).hash), revision: revision,
            told: told)
    }

    @Test func `a slow client is told the latest revision, not every one`() async {
        let subscription = Self.subscription(revision: 7, told: nil)
        #expect(await subscription.next() == .revision(7))
        subscription.move(to: 8)
        subscription.move(to: 9)
        subscription.keepAlive()
        #expect(await subscription.next() == .revision(9))
        // An event is a sign of life by itself.
        subscription.keepAlive()
        #expect(await subscription.next() == .keepAlive)
    }

    @Test func `an answer from before does not move a stream back`() async {
        let subscription = Self.subscription(revision: 7, told: nil)
        #expect(await subscription.next() == .revision(7))
        subscription.move(to: 6)
        subscription.keepAlive()
        #expect(await subscription.next() == .keepAlive)
        subscription.move(to: 8)
        #expect(await subscription.next() == .revision(8))
    }

    @Test func `the same revision is told once`() async {
        let subscription = Self.subscription(revision: 7, told: 7)
        subscription.move(to: 7)
        subscription.keepAlive()
        #expect(await subscription.next() == .keepAlive)
    }

    @Test func `of each vault a slow client is told the latest position, once`() async {
        let subscription = Self.subscription(revision: 7, told: 7)
        let vault = VaultID.random()
        subscription.move(vault, to: VaultPosition(revision: 1, headNumber: 1, headHash: [1]))
        subscription.move(vault, to: VaultPosition(revision: 2, headNumber: 2, headHash: [2]))
        #expect(
            await subscription.next() == .vault(vault, VaultPosition(revision: 2, headNumber: 2, headHash: [2])))
        subscription.move(vault, to: VaultPosition(revision: 3, headNumber: 2, headHash: [2]))
        subscription.move(vault, to: nil)
        #expect(await subscription.next() == .vault(vault, nil))
        subscription.keepAlive()
        #expect(await subscription.next() == .keepAlive)
    }

    @Test func `an ended stream tells nothing more, whatever waits`() async {
        let subscription = Self.subscription(revision: 7, told: nil)
        subscription.end()
        subscription.move(to: 8)
        #expect(await subscription.next() == nil)
        #expect(await subscription.next() == nil)
    }

    @Test func `a cancelled stream stops waiting`() async {
        let subscription = Self.subscription(revision: 7, told: 7)
        let waiting = Task { await subscription.next() }
        waiting.cancel()
        #expect(await waiting.value == nil)
    }

    @Test func `whoever waits is woken by whatever happens`() async {
        for change in 0..<3 {
            let subscription = Self.subscription(revision: 7, told: 7)
            async let event = subscription.next()
            await Task.yield()
            switch change {
            case 0: subscription.move(to: 8)
            case 1: subscription.keepAlive()
            default: subscription.end()
            }
            #expect(await event == [.revision(8), .keepAlive, nil][change])
        }
    }
}
