//! A masked repo into which a model's replies are put, one masked part of the code after another.

use std::collections::BTreeMap;
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
}

impl FilledCode {
    /// Starts with a masked repo. `functions` are the masked functions and regions (groups of statements) of the task.
    pub(super) fn new(masked: Code, functions: &[TaskFunction]) -> Self {
        let stand_in = |function: &TaskFunction| function.region.as_ref().map(|region| region.stand_in.clone());
        let regions = functions.iter().enumerate().filter_map(|(place, it)| Some((place, stand_in(it)?)));
        Self { regions: regions.collect(), code: masked }
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
        let spliced = match (self.regions.get(&place), index) {
            (Some(at), index) => module.splice_region(index, at, reply)?,
            (None, Some(index)) if function.region.is_some() => module.splice_definition(index, reply)?,
            (None, Some(index)) => module.splice(index, reply)?,
            (None, None) => return Err("what stands for the missing part is gone".to_owned()),
        };
        let module = Module::parse(file.clone(), spliced.bytes.clone()).map_err(|error| error.to_string())?;
        let is_here = |place: usize| functions[place].region.as_ref().is_some_and(|region| region.file == file);
        self.regions = std::mem::take(&mut self.regions)
            .into_iter()
            .filter_map(|(place, at)| Some((place, if is_here(place) { spliced.moved(&at)? } else { at })))
            .collect();
        self.code.modules.insert(file.clone(), module);
        Ok((file, spliced.bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::TaskRegion;

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
