/// Which bodies that are still arriving lose their memory when it runs short. Pure.
///
/// Whoever began first loses it, as soon as more than three quarters are taken, so that there is room for who comes next. Nobody
/// does in his first moment: a body that is sent at once arrives, and who wants to keep others out has to send all of it
/// anew in each such moment.
struct RevocableMemory: Sendable {
    private struct Holder: Sendable {
        let since: ContinuousClock.Instant
        var count: Int
        var isRecalled = false
        let wake: @Sendable () -> Void
    }

    private let mark: Int
    /// How long nobody loses anything.
    private let moment: Duration
    private var holders: [ObjectIdentifier: Holder] = [:]

    init(total: Int, moment: Duration) {
        mark = total / 4 * 3
        self.moment = moment
    }

    /// Notes how much somebody has from now on, who can lose it.
    mutating func hold(
        _ count: Int, by id: ObjectIdentifier, at now: ContinuousClock.Instant, wake: @escaping @Sendable () -> Void
    ) {
        guard holders[id] == nil else { return resize(to: count, by: id) }
        if count > 0 { holders[id] = Holder(since: now, count: count, wake: wake) }
    }

    /// Notes how much somebody has, if he can lose it.
    mutating func resize(to count: Int, by id: ObjectIdentifier) {
        if count == 0 { keep(id) } else { holders[id]?.count = count }
    }

    /// What somebody has cannot be lost any more.
    mutating func keep(_ id: ObjectIdentifier) { if !holders.isEmpty { holders[id] = nil } }

    func isRecalled(_ id: ObjectIdentifier) -> Bool { holders[id]?.isRecalled ?? false }

    /// Takes from the eldest until no more than the mark is taken.
    /// - Parameter used: How much is taken, or would be.
    /// - Returns: Who has to be woken, to give back what they have.
    mutating func recall(used: Int, at now: ContinuousClock.Instant) -> [@Sendable () -> Void] {
        guard used > mark else { return [] }
        var excess = used - mark - holders.values.reduce(0) { $1.isRecalled ? $0 + $1.count : $0 }
        guard excess > 0 else { return [] }
        let eldest = holders.filter { !$0.value.isRecalled && $0.value.since + moment <= now }
            .sorted { $0.value.since < $1.value.since }
        var wakes: [@Sendable () -> Void] = []
        for (id, holder) in eldest where excess > 0 {
            holders[id]?.isRecalled = true
            excess -= holder.count
            wakes.append(holder.wake)
        }
        return wakes
    }
}
