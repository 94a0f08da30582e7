/// Generations of connections.
extension PoolStateMachine {
    /// Begins a generation. Connections of earlier ones get no more requests, and are closed after their pending ones.
    mutating func begin(_ epoch: Int) -> [Action] {
        guard epoch > self.epoch else { return [] }
        self.epoch = epoch
        return slots.indices.filter { isOutdated($0) }.compactMap { retire(id($0)) }
    }

    func isOutdated(_ index: Int) -> Bool { slots[index].epoch < epoch }
}
