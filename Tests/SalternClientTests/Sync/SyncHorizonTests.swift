import Testing

@testable import SalternClient

/// Which reports of the server have no news.
@Suite struct SyncHorizonTests {
    /// A device that has fetched everything up to a revision that the server has reported.
    private func horizon(at revision: Int64) -> SyncHorizon {
        let horizon = SyncHorizon()
        #expect(isNews(revision, horizon))
        horizon.end(horizon.begin())
        return horizon
    }

    private func isNews(_ revision: Int64, _ horizon: SyncHorizon) -> Bool { horizon.isNews(revision) }

    @Test func `what was fetched and what was sent is no news when the server reports it`() {
        let horizon = horizon(at: 5)
        #expect(!isNews(5, horizon))
        var fetching = horizon.begin()
        fetching.take(Revision(6))
        fetching.take(Revision(9))
        horizon.end(fetching)
        #expect(!isNews(9, horizon))
        horizon.confirm(Revision(10))
        horizon.confirm(Revision(11))
        // The same again is the revision of before.
        horizon.confirm(Revision(10))
        #expect(!isNews(11, horizon))
        #expect(isNews(12, horizon))
    }

    @Test func `what another device has sent in between is news`() {
        let horizon = horizon(at: 5)
        horizon.confirm(Revision(7))
        #expect(isNews(7, horizon))
    }

    @Test func `what is reported while everything is fetched is news`() {
        let horizon = horizon(at: 5)
        let fetching = horizon.begin()
        #expect(isNews(6, horizon))
        horizon.end(fetching)
        #expect(isNews(6, horizon))
        horizon.end(horizon.begin())
        #expect(!isNews(6, horizon))
    }

    @Test func `a fetching that does not come to its end leaves the horizon where it is`() {
        let horizon = horizon(at: 5)
        #expect(isNews(6, horizon))
        _ = horizon.begin()
        #expect(isNews(6, horizon))
    }

    @Test func `a server that goes back is followed`() {
        let horizon = horizon(at: 5)
        #expect(isNews(3, horizon))
        horizon.end(horizon.begin())
        #expect(!isNews(3, horizon))
        #expect(isNews(5, horizon))
        let last = self.horizon(at: .max)
        last.confirm(Revision(.min))
        #expect(!isNews(.max, last))
    }
}
