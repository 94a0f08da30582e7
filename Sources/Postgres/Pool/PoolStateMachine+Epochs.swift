/// Connections that were good until something was found that may not hold for them.
extension PoolStateMachine {
    /// Another epoch has begun: connections of earlier ones get nothing more, and are closed after what is under way.
    mutating func begin(_ epoch: Int) -> [Action] {
        guard epoch > self.epoch else { return [] }
        self.epoch = epoch
        return slots.indices.filter { isOutdated($0) }.compactMap { retire(id($0)) }
    }

    func isOutdated(_ index: Int) -> Bool { slots[index].epoch < epoch }
}
