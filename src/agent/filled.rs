//! A masked repo into which a model's replies are put, one masked part of the code after another.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use super::TaskFunction;
use super::retrieval::Code;
use crate::code::Module;

/// The repo with the code written so far.
pub(super) struct FilledCode {
    /// All Python files.
    pub(super) code: Code,
    /// Current position of each masked region (a group of statements) in its file, by the region's index in the task's
    /// list of functions. A region is removed from this map when the whole function around it is replaced.
    regions: BTreeMap<usize, Range<usize>>,
    /// Qualified names of the helper functions that replies for a masked function or region added to the file, by the
    /// index of this function or region in the task's list. Helpers nested in the masked function are not included,
    /// because a later reply replaces the whole function.
    added: BTreeMap<usize, BTreeSet<String>>,
}

impl FilledCode {
    /// Starts with a masked repo. `functions` are the masked functions and regions (groups of statements) of the task.
    pub(super) fn new(masked: Code, functions: &[TaskFunction]) -> Self {
        let stand_in = |function: &TaskFunction| function.region.as_ref().map(|region| region.stand_in.clone());
        let regions = functions.iter().enumerate().filter_map(|(place, it)| Some((place, stand_in(it)?)));
        Self { regions: regions.collect(), code: masked, added: BTreeMap::new() }
    }

    /// Current position of a masked region (a group of statements) in its file; `None` if the function around it was
    /// replaced.
    pub(super) fn region(&self, place: usize) -> Option<&Range<usize>> {
        self.regions.get(&place)
    }

    /// Replaces a masked function or region (a group of statements) by the code in a reply. Returns the path and the
    /// new bytes of the changed file. If the whole function around a region was replaced, the reply must define this
    /// function, because statements alone cannot be put in place of the region.
    ///
    /// # Errors
    /// Returns an error message to show to the model if the reply does not contain the code, or if the code does not
    /// fit into the file.
    pub(super) fn put(
        &mut self,
        functions: &[TaskFunction],
        place: usize,
        reply: &str,
    ) -> Result<(PathBuf, Vec<u8>), String> {
        let function = functions.get(place).ok_or("there is no such function")?;
        let file = match &function.region {
            Some(region) => region.file.clone(),
            None => function.selector()?.file,
        };
        let module = self.code.modules.get(&file).ok_or("its file is gone")?;
        let index = match (function.selector(), &function.region) {
            (Ok(selector), _) => Some(module.find(&selector.name).map_err(|error| error.to_string())?),
            (Err(_), Some(_)) => None,
            (Err(error), None) => return Err(error),
        };
        let label = index.map(|index| module.functions()[index].label());
        let splice = |module: &Module, at: Option<&Range<usize>>| {
            let index =
                label.as_deref().map(|label| module.find(label)).transpose().map_err(|error| error.to_string())?;
            match (at, index) {
                (Some(at), index) => module.splice_region(index, at, reply),
                (None, Some(index)) if function.region.is_some() => module.splice_definition(index, reply),
                (None, Some(index)) => module.splice(index, reply),
                (None, None) => Err("the statement in place of the missing part was removed".to_owned()),
            }
        };
        let at = self.regions.get(&place);
        // If this reply defines a helper again that an earlier reply added, the earlier helper is removed first.
        let corrected = || {
            let earlier = self.added.get(&place)?;
            let (shorter, names) = module.without_corrected(index, earlier, reply)?;
            let at = at.map(|at| shorter.moved(at).ok_or(())).transpose().ok()?;
            let module = Module::parse(file.clone(), shorter.bytes.clone()).ok()?;
            let spliced = splice(&module, at.as_ref()).ok()?;
            names.iter().all(|name| spliced.added.contains(name)).then(|| (vec![shorter], spliced))
        };
        let (earlier, spliced) = match corrected() {
            Some(steps) => steps,
            None => (Vec::new(), splice(module, at)?),
        };
        let module = Module::parse(file.clone(), spliced.bytes.clone()).map_err(|error| error.to_string())?;
        let is_here = |place: usize| functions[place].region.as_ref().is_some_and(|region| region.file == file);
        let moved = |at: Range<usize>| earlier.iter().chain([&spliced]).try_fold(at, |at, step| step.moved(&at));
        self.regions = std::mem::take(&mut self.regions)
            .into_iter()
            .filter_map(|(place, at)| Some((place, if is_here(place) { moved(at)? } else { at })))
            .collect();
        let before = outer_functions(self.code.modules.get(&file).ok_or("its file is gone")?);
        let added = self.added.entry(place).or_default();
        added.extend(outer_functions(&module).difference(&before).cloned());
        self.code.modules.insert(file.clone(), module);
        Ok((file, spliced.bytes))
    }
}

/// Returns the qualified names of the functions and methods that are not inside of other functions.
fn outer_functions(module: &Module) -> BTreeSet<String> {
    module.functions().iter().filter(|it| it.parent.is_none()).map(|it| it.name.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TaskRegion;

    #[test]
    fn a_repair_replaces_the_helpers_of_the_first_reply_and_no_others() {
        let masked =
            "def kept(x):\n    return x\n\n\nclass A:\n    def f(self, x):\n        raise NotImplementedError\n";
        let function =
            TaskFunction { at: "m.py::A.f".to_owned(), description: String::new(), passages: Vec::new(), region: None };
        let code = Code::new([(PathBuf::from("m.py"), masked.as_bytes().to_vec())]);
        let mut filled = FilledCode::new(code, std::slice::from_ref(&function));
        let mut put = |reply: &str| -> String {
            let (_, bytes) = filled.put(std::slice::from_ref(&function), 0, reply).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        let reply = |helper: &str, method: &str| {
            format!(
                "def kept(x):\n    return 3\n\n\ndef helper(x):\n    {helper}\n\n\nclass A:\n    def _h{method}\n\n    \
                 def f(self, x):\n        return kept(x) + helper(x) + self._h(x)\n"
            )
        };
        let first = put(&reply("return x", "(self, x):\n        return x"));
        let second = put(&reply("return 2 * x", "(self, x, y=1):\n        return y"));
        assert!(first.contains("def helper(x):\n    return x\n") && first.contains("def _h(self, x):\n"), "{first}");
        for text in ["def kept(x):\n    return x\n", "def helper(x):\n    return 2 * x\n", "def _h(self, x, y=1):\n"] {
            assert!(second.contains(text), "{text}\n{second}");
        }
        assert_eq!((second.matches("def helper").count(), second.matches("def _h").count()), (1, 1), "{second}");
        // If a reply does not define the helpers again, they stay in the file.
        let third = put("class A:\n    def f(self, x):\n        return helper(x) - self._h(x)\n");
        assert!(third.contains("return 2 * x") && third.contains("return helper(x) - self._h(x)"), "{third}");
    }

    /// Puts these replies, each for the function `f` or `g` of the file, into the masked file one after another.
    fn after_replies(masked: &str, replies: &[(usize, &str)]) -> String {
        let function = |name: &str| TaskFunction {
            at: format!("m.py::{name}"),
            description: String::new(),
            passages: Vec::new(),
            region: None,
        };
        let functions = ["f", "g"].map(function);
        let code = Code::new([(PathBuf::from("m.py"), masked.as_bytes().to_vec())]);
        let mut filled = FilledCode::new(code, &functions);
        let mut text = String::new();
        for (place, reply) in replies {
            text = String::from_utf8(filled.put(&functions, *place, reply).unwrap().1).unwrap();
        }
        text
    }

    #[test]
    fn a_repair_removes_no_function_of_the_file_and_no_helper_that_other_code_calls_otherwise() {
        let g = "def g(x):\n    raise NotImplementedError\n";
        let f = "def f(x):\n    raise NotImplementedError\n";
        // The file already has a function with the name of the reply's helper, so the helper is nested in `f`.
        let masked =
            format!("def core(x, size):\n    return size\n\n\ndef user(x):\n    return core(x, 1)\n\n\n{f}\n\n{g}");
        let reply = |result: &str| format!("def core(x):\n    return x\n\n\ndef f(x):\n    return {result}core(x)\n");
        let text = after_replies(&masked, &[(0, &reply("1 / 0 * ")), (0, &reply(""))]);
        assert!(text.contains("def core(x, size):\n    return size\n"), "{text}");
        assert!(text.contains("    def core(x):\n"), "{text}");
        // `g` calls the helper with its first parameters, so the helper with other parameters must not replace it.
        let masked = format!("{f}\n\n{g}");
        let with_helper = |parameters: &str, call: &str| {
            format!("def _h({parameters}):\n    return x\n\n\ndef f(x):\n    return {call}\n")
        };
        let replies = [
            (0, with_helper("x", "_h(x)")),
            (1, "def g(x):\n    return _h(x)\n".to_owned()),
            (0, with_helper("x, eps", "_h(x, 1)")),
        ];
        let replies = replies.each_ref().map(|(place, reply)| (*place, reply.as_str()));
        let text = after_replies(&masked, &replies);
        assert!(text.contains("\ndef _h(x):\n") || text.starts_with("def _h(x):\n"), "{text}");
        assert!(text.contains("    def _h(x, eps):\n") && text.contains("return _h(x, 1)"), "{text}");
    }

    #[test]
    fn statements_for_a_region_of_a_replaced_function_are_refused_and_a_whole_function_is_accepted() {
        let masked = "def f(x):\n    raise NotImplementedError\n    y = x\n    raise NotImplementedError\n";
        let line = "    raise NotImplementedError";
        let region = |start: usize| TaskFunction {
            at: "m.py::f[part]".to_owned(),
            description: String::new(),
            passages: Vec::new(),
            region: Some(TaskRegion {
                file: "m.py".into(),
                function: Some("f".to_owned()),
                lines: 1,
                stand_in: start..start + line.len(),
                range: start..start + line.len(),
            }),
        };
        let functions = [masked.find(line).unwrap(), masked.rfind(line).unwrap()].map(region);
        let code = Code::new([(PathBuf::from("m.py"), masked.as_bytes().to_vec())]);
        let mut filled = FilledCode::new(code, &functions);
        let mut put = |place: usize, reply: &str| -> Result<String, String> {
            let (_, bytes) = filled.put(&functions, place, reply)?;
            Ok(String::from_utf8(bytes).unwrap())
        };
        let whole = "def f(x):\n    return 2 * x\n";
        assert_eq!(put(0, whole).unwrap(), whole);
        let fault = put(1, "```python\nreturn y\n```").unwrap_err();
        assert!(fault.contains("another reply has already replaced the whole function"), "{fault}");
        assert_eq!(put(1, &whole.replace('2', "3")).unwrap(), whole.replace('2', "3"));
    }
}
